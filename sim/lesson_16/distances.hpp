#pragma once

#include <string>

#include "src/optim/muon_settings.hpp"
#include "src/train/training.hpp"

namespace muonwalk::sim {

/// How far the strategies that are not Muon to the last bit are from it, for TP of 2 and of 4: a line for each of
/// them and each size, with the new weights that have other bits than the serial step's after each of the first two
/// steps, and the distance of the two updates over the length of the serial one (Frobenius norms over all matrices).
/// Worked out by references, without ranks.
std::string distance_table(const Training& training, const MuonSettings& settings, int dp, Index bucket);

}  // namespace muonwalk::sim
