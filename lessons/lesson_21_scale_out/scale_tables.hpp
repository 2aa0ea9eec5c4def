#pragma once

#include <string>

namespace muonwalk::sim {

/// A step of Muon on a model of 7B parameters, on more and more ranks of the cluster "epyc-vm" on dp × tp 2: what
/// messages, bytes and Newton–Schulz take. At most 100 columns.
std::string machines_table();

/// The three promises at each size, on the cluster "h100-efa", and what breaks first. A figure that lies outside of
/// what was measured has a mark. At most 100 columns.
std::string promises_table();

/// How far the model is off, in short: its targets on published runs, by nodes, and the published steps that it misses.
std::string validation_summary();

}  // namespace muonwalk::sim
