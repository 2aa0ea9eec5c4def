#pragma once

#include <string>

#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// A step of Muon as one rank takes it, a line per phase: what the rank has before it, what after it, and how many
/// bytes it sends meanwhile. All of it from the rank's plan (muon_plan) for `layout`. Of several buckets, and of many
/// matrices, only the first are shown; the last line adds up all. At most 100 columns.
std::string step_table(const Plan& plan, const Layout& layout);

}  // namespace muonwalk::sim
