#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// The root mean square of weights in the course of training.
struct WeightRms {
  std::string name;         ///< "matrix, by Muon"
  bool decays = false;      ///< whether the weights decay
  std::vector<double> rms;  ///< after each of kRmsSteps
};

/// The steps after which it is taken.
constexpr int kRmsSteps[] = {0, 25, 50, 100, 200, 400};

/// A matrix of 32 × 32 that Muon trains, and 256 gains of an RMSNorm that AdamW trains with the same learning rate;
/// each with the decay of `muon` and without any, on random gradients without a mean (noise). Weights begin as random
/// numbers of variance 1, gains at 1.
std::vector<WeightRms> weight_rms(const MuonSettings& muon, std::uint64_t seed);

/// A line for each.
std::string weight_rms_table(const std::vector<WeightRms>& all);

}  // namespace muonwalk::sim
