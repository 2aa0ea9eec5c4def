#pragma once

#include <vector>

#include "src/optim/adamw.hpp"
#include "src/train/training_data.hpp"

namespace muonwalk {

/// The reference: all parameters after `steps` steps of AdamW in one process, as plain loops over whole matrices. The
/// leaves that `dp` data-parallel ranks contribute are added as a balanced binary tree (tree_sum.hpp). In the order of
/// the parameters. Throws std::invalid_argument for more steps than there are gradients for.
std::vector<NamedMatrix> serial_adamw(const TrainingData& data, int steps, int dp, const AdamWSettings& settings);

}  // namespace muonwalk
