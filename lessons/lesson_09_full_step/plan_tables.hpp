#pragma once

#include <string>
#include <vector>

#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// A step of Muon as one rank takes it, a line per phase: what the rank has before it, what after it, and how many
/// bytes it sends meanwhile. All of it comes from the rank's plan (muon_plan) for `layout`. Of several buckets the
/// first is shown, and of its matrices the largest, `most_matrices` of them; the last line adds up all.
std::string step_table(const Plan& plan, const Layout& layout, int most_matrices);

/// A layout whose work is to be told.
struct WorkOfLayout {
  std::string name;             ///< "one bucket"
  std::vector<Layout> stages;   ///< the layout of each pipeline stage
  std::vector<PlanKind> kinds;  ///< what the ranks do in a step
};

/// How much Newton–Schulz all ranks do in a step: a line for one process (`serial`, its plan), one for each layout, and
/// one for the most that there could be, where all ranks of a stage do each of its matrices. Each layout says how many
/// ranks do each matrix: those that own an element of it.
std::string work_table(const Plan& serial, const std::vector<WorkOfLayout>& layouts);

}  // namespace muonwalk::sim
