#pragma once

#include <string>

namespace muonwalk::sim {

/// Which activations are computed once more in the backward pass, in place of being kept.
enum class Recomputation {
  none,       ///< All are kept.
  selective,  ///< Those of attention's own products are not kept (Korthikanti et al., 2022).
  full        ///< A layer's input alone is kept.
};

/// The names are "none", "selective" and "full". Any other word is refused with a UsageError.
/// @{
const char* recomputation_name(Recomputation recomputation);
Recomputation parse_recomputation(const std::string& word);
/// @}

/// How a training run is laid out over a cluster: the columns of a record of a run.
struct TrainingLayout {
  int nodes = 1;         ///< All accelerators of these nodes take part.
  int dp = 1;            ///< Data-parallel ranks.
  int tp = 1;            ///< Tensor-parallel ranks.
  int pp = 1;            ///< Pipeline stages.
  int zero = 0;          ///< 0: every DP rank has all optimizer state; 1: it has a share.
  int micro_batch = 1;   ///< Sequences in one micro-batch of one DP rank.
  int accumulation = 1;  ///< Micro-batches per step and DP rank.
  int ep = 1;            ///< Expert-parallel ranks, among the DP ranks: each has a share of every layer's experts.
  Recomputation recomputation = Recomputation::none;
  int chunks = 1;  ///< Pieces that a stage's layers are cut into, v of the bubble (pp − 1) / (v · m).

  int ranks() const { return dp * tp * pp; }
};

/// The most ranks, micro-batches and sequences that a layout may have of each.
constexpr int kMostOfALayout = 1 << 20;

/// Refuses sizes below 1 or above kMostOfALayout, and a grid of more ranks than that. Throws UsageError, one sentence.
void require_sizes(const TrainingLayout& layout);

/// Refuses whatever require_sizes refuses, a ZeRO stage that is not 0 or 1, and a grid that has another number of ranks
/// than `nodes` · `node`. Throws UsageError, one sentence.
void require_sensible(const TrainingLayout& layout, int node);

/// "dp 4 × tp 2 × pp 2, ZeRO-1, 8 micro-batches of 2".
std::string text(const TrainingLayout& layout);

}  // namespace muonwalk::sim
