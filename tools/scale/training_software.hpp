#pragma once

#include <string>
#include <vector>

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

/// What a training program does in its own way, as far as time and memory depend on it.
struct TrainingSoftware {
  std::string name;                       ///< "nanotron"
  double product_efficiency = 1;          ///< The share of the peak that products reach, where no curve is read.
  std::string fitted_on;                  ///< The accelerator of the runs that constants were fitted to: "H100".
  bool reads_curve = false;               ///< The accelerator's curve of efficiencies is taken, where it has one.
  double host_seconds_per_layer = 0;      ///< Time to launch forward and backward of a layer.
  double node_hop_seconds = 0;            ///< Latency per layer and hop of a TP ring that leaves its node.
  double pipeline_rank_seconds = 0;       ///< Launching takes this longer per layer and TP rank on the slow path.
  int slow_path_nodes = 0;                ///< From here on, one stage takes the slow path too; 0: never.
  double node_link_share = 1;             ///< The share of the links out of a node that collectives reach.
  double group_seconds_per_doubling = 0;  ///< A DP collective waits for this, per doubling of its nodes.
  double remap_seconds_per_gibibyte = 0;  ///< Time lost per micro-batch and GiB beyond the card.
  double usable_share = 1;                ///< The share of the card's memory for what is counted.
  double elementwise_share = 1;           ///< Of the traffic of what is not a product, what is left where it is fused.
  double logit_share = 1;                 ///< The same of that of logits.
  double gradient_bytes = 4;              ///< Of a gradient, as it is summed over DP ranks.
  double fresh_gradient_bytes = 0;        ///< A bf16 gradient's bytes before it is added to the fp32 one.
  bool keeps_gathered_inputs = false;     ///< A TP rank keeps the gathered input of a product for the backward pass.
  bool fused_attention = true;            ///< The square of attention is never in memory.
  bool stages_by_cost = false;            ///< Stages are filled by the cost of blocks, else with as many layers each.
  std::string source;                     ///< Where these facts come from.
};

/// A constant that was fitted to the runs of 1B, 3B and 8B models in records/ultrascale_runs.csv. All of these hold for
/// every model, layout and number of nodes; all else was published or is counted.
struct FittedConstant {
  std::string name;  ///< "product efficiency"
  double value;
  std::string unit;     ///< "s"; "1" for a share
  std::string meaning;  ///< What it is, and why it is there.
};

/// The fitted constants, those of time first.
const std::vector<FittedConstant>& fitted_constants();

/// nanotron with what is fitted to all clean runs but those of this model, or on these nodes: "1B", "8 nodes". Throws
/// std::invalid_argument for another part.
TrainingSoftware fitted_without(const std::string& part);

/// The programs that the cost model knows, "nanotron" first.
std::vector<std::string> software_names();

/// The software of that name. Throws UsageError, one sentence with the names that are known, for another one.
const TrainingSoftware& software_of(const std::string& name);

}  // namespace muonwalk::sim
