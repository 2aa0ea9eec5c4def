#pragma once

#include <vector>

#include "src/comm/communicator.hpp"
#include "src/train/checkpoint_pieces.hpp"

namespace muonwalk {

namespace phases {
/// Every rank says how many steps it has taken and what its optimizer keeps, so that all of them see the same.
constexpr Phase compare_states = "what ranks keep";
}  // namespace phases

/// What all ranks have found to be the same on all of them.
struct ComparedStates {
  int steps = 0;                 ///< How many steps the optimizer has taken.
  std::vector<StateForm> forms;  ///< What a rank of each pipeline stage keeps.
};

/// Every rank of `world` tells all others how many steps its optimizer has taken and what it keeps, in two all-gathers
/// of bytes. `stages` are the layouts of the pipeline stages. Throws RunError, the same sentence on every rank, where
/// that does not go together: steps or an optimizer other than those of the first rank, something that not all ranks of
/// a stage keep, a parameter of two stages of which they keep different things, two things of one name of one
/// parameter.
ComparedStates compare_states(Communicator& world, const std::vector<Layout>& stages, const SavedState& saved);

/// What that does, appended to a rank's plan.
void plan_comparison(Plan& plan, const std::vector<Layout>& stages, const std::vector<StateForm>& forms);

}  // namespace muonwalk
