#pragma once

#include <string>

#include "tools/scale/layout_search.hpp"

namespace muonwalk::sim {

/// A step of Muon on a model of 7B parameters, on more and more ranks of the cluster "epyc-vm" on dp × tp 2: what
/// messages, bytes and Newton–Schulz take. At most 100 columns.
std::string machines_table();

/// The three promises at each size, on the cluster "h100-efa": the overhead at a fixed batch and at one that grows with
/// the GPUs, each as a band, and Muon's overhead as the formula that it is. A figure that lies outside of what was
/// measured has a mark. At most 100 columns. Throws as batch_sequences does.
std::string promises_table(const Batch& batch);

/// How far the model is off, in short: its targets on published runs that constants were not fitted to, and its misses.
std::string validation_summary();

}  // namespace muonwalk::sim
