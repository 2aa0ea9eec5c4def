#pragma once

#include "src/optim/full_step.hpp"

namespace muonwalk {

/// Refuses what full_step could not make sense of, before anything is sent: groups of another size than the grid's, a
/// place that is not the rank's in its groups, buckets (weights, gradients or momentum) of other sizes than the
/// layout's. Throws std::invalid_argument with one sentence that names what does not fit and what would.
void check_full_step(const Layout& layout, const Place& place, const Communicator& dp, const Communicator& tp,
                     const Buckets& gradients, const MuonState& state);

}  // namespace muonwalk
