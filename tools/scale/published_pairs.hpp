#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/scale/published_steps.hpp"

namespace muonwalk::sim {

/// What Muon adds to a step of AdamW, of two runs that differ in nothing else, beside what the model says of the same
/// run (tools/scale/runs), and what it would be if Muon cost nothing or T·m/B. All are shares of AdamW's published
/// step.
struct PublishedPair {
  std::string what;                     ///< "GPT-2 124M, 8 × H100"
  double adamw = 0;                     ///< Published, in seconds.
  double published = 0, predicted = 0;  ///< What Muon adds.
  double low = 0, high = 0;             ///< The band of the prediction.
  std::optional<double> jordan;         ///< T·m/B, where the tokens of a step are published.

  /// Predicted minus published: 0.01 is a point.
  double error() const { return predicted - published; }
};
std::vector<PublishedPair> published_pairs();

/// Of runs with Muon for which there is no step with AdamW: the optimizer's own time, and a whole step.
std::vector<PublishedStep> unpaired_steps();

/// What Muon sends on the machine of the published run, four A4000 over PCIe 4.0 x4, on dp 4, dp 2 × tp 2 and tp 4, by
/// strategy (a): the report calls the second the sweet spot.
struct SweetSpot {
  int dp = 1, tp = 1;
  double bytes = 0, sending = 0, newton_schulz = 0;  ///< Of a rank; seconds.
};
std::vector<SweetSpot> sweet_spots();

/// The pairs, what has no pair, and the sweet spots, as published_steps_text has its tables.
std::string published_pairs_text();

}  // namespace muonwalk::sim
