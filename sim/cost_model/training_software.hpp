#pragma once

#include <string>
#include <vector>

namespace muonwalk::sim {

/// What a training program does in its own way, as far as time and memory depend on it.
struct TrainingSoftware {
  std::string name;                       ///< "nanotron"
  double product_efficiency = 1;          ///< share of the peak that products reach, where no curve is read
  bool reads_curve = false;               ///< the accelerator's curve of efficiencies is taken, where it has one
  double host_seconds_per_layer = 0;      ///< to launch forward and backward of a layer
  double node_hop_seconds = 0;            ///< per layer and hop of a TP ring that leaves its node
  double pipeline_rank_seconds = 0;       ///< per layer and TP rank on the slow path
  int slow_path_nodes = 0;                ///< from here on, one stage takes the slow path too; 0: never
  double node_link_share = 1;             ///< of the links out of a node, what collectives reach
  double group_seconds_per_doubling = 0;  ///< wait of a DP collective, per doubling of its nodes
  double remap_seconds_per_gibibyte = 0;  ///< per micro-batch and GiB beyond the card
  double usable_share = 1;                ///< of the card's memory, for what is counted
  double fresh_gradient_bytes = 0;        ///< per parameter: the bf16 gradient before it is added to the fp32 one
  bool keeps_gathered_inputs = false;     ///< a TP rank keeps the gathered input of a product for the backward pass
  bool fused_attention = true;            ///< the square of attention is never in memory
  bool stages_by_cost = false;            ///< stages are filled by the cost of blocks, else with as many layers each
  std::string source;                     ///< of these facts
};

/// The programs that the cost model knows, "nanotron" first.
std::vector<std::string> software_names();

/// The software of that name. Throws UsageError, one sentence with the names that are known, for another one.
const TrainingSoftware& software_of(const std::string& name);

}  // namespace muonwalk::sim
