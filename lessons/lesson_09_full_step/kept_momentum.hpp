#pragma once

#include <vector>

#include "lessons/lesson_09_full_step/training_files.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk::sim {

/// What the reader's file of momentum holds; nothing where there is none.
MuonMemory kept_before(const Training& training);

/// Puts what a Muon has kept of the whole model where the rank at `place` keeps its part: the DP shard of its TP slice
/// of each momentum, and all means of the matrices that it orthogonalizes. What is not in `kept` stays as it is.
void put_kept(const MuonMemory& kept, const Layout& hidden, const Place& place, MuonState& state);

/// The parts that a rank keeps, one row for each matrix of which it owns an element, and one for its means.
std::vector<NamedMatrix> kept_parts(const MuonState& state, const Layout& hidden, const Place& place);

}  // namespace muonwalk::sim
