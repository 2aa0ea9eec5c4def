#pragma once

#include <string>
#include <vector>

namespace muonwalk::sim {

/// Something that was published about a step of training, beside what the model says.
struct PublishedStep {
  std::string what;  ///< "175B, selective recomputation"
  double predicted = 0;
  double published = 0;
  std::string unit = {};      ///< "s", "ms" or "%".
  std::string miss = {};      ///< Why it differs, where it differs by more than 10 %.
  bool extrapolated = false;  ///< The prediction reads a curve outside of what was measured.
  double low = 0, high = 0;   ///< The band of the prediction, where products were not measured; 0: none.

  /// Predicted over published, minus 1.
  double error() const { return predicted / published - 1; }
};

/// Megatron-LM's step times on A100s (Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
/// Models", 2022, table 5; layouts: its table 3), eight of them.
std::vector<PublishedStep> megatron_steps();

/// What Muon adds to a step. Of Kimi K2 and Qwen3-30B the records say how Newton–Schulz compares to the model's own
/// FLOPs, from which the batch follows; the step is predicted for that batch.
std::vector<PublishedStep> muon_steps();

/// Both as tables of at most 100 columns, each with its source and with its misses below it.
std::string published_steps_text();

/// What Muon adds to a step of AdamW, of two runs that differ in nothing else, beside what the model says of the same
/// run (tools/scale/runs), and what it would be if Muon cost nothing or T·m/B. All in shares of AdamW's step.
struct PublishedPair {
  std::string what;                     ///< "GPT-2 124M, 8 × H100"
  double adamw = 0;                     ///< Published, in seconds.
  double published = 0, predicted = 0;  ///< What Muon adds.
  double low = 0, high = 0;             ///< The band of the prediction.
  double jordan = 0;                    ///< T·m/B.
  bool tokens = false;                  ///< Whether the tokens of a step are published; else they are supposed.

  /// Predicted minus published: 0.01 is a point.
  double error() const { return predicted - published; }
};
std::vector<PublishedPair> published_pairs();

/// The pairs, and what has no pair, as published_steps_text has its tables.
std::string published_pairs_text();

}  // namespace muonwalk::sim
