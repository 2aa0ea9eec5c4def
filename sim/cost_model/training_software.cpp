#include "sim/cost_model/training_software.hpp"

#include <algorithm>

#include "sim/cost_model/fitted_constants.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

TrainingSoftware nanotron() {
  TrainingSoftware software;
  software.name = "nanotron";
  software.product_efficiency = kProductEfficiency;
  software.host_seconds_per_layer = kHostSecondsPerLayer;
  software.node_hop_seconds = kNodeHopSeconds;
  software.pipeline_rank_seconds = kPipelineRankSeconds;
  software.slow_path_nodes = 64;
  software.node_link_share = kNodeLinkShare;
  software.group_seconds_per_doubling = kGroupSecondsPerDoubling;
  software.remap_seconds_per_gibibyte = kRemapSecondsPerGibibyte;
  software.usable_share = kUsableShare;
  software.fresh_gradient_bytes = 2;
  software.keeps_gathered_inputs = true;
  software.stages_by_cost = true;
  software.source = "huggingface/nanotron (public source); constants fitted to the runs of the Ultra-Scale Playbook";
  return software;
}

// Nothing is fitted to its step times: what is known of the hardware, and no cost of a host.
TrainingSoftware megatron() {
  TrainingSoftware software;
  software.name = "megatron";
  software.product_efficiency = kProductEfficiency;
  software.reads_curve = true;
  software.fused_attention = false;
  software.source = "Korthikanti et al., 'Reducing Activation Recomputation in Large Transformer Models', 2022";
  return software;
}

const std::vector<TrainingSoftware>& known_software() {
  static const std::vector<TrainingSoftware> all = {nanotron(), megatron()};
  return all;
}

}  // namespace

std::vector<std::string> software_names() {
  std::vector<std::string> names;
  for (const TrainingSoftware& each : known_software()) names.push_back(each.name);
  return names;
}

const TrainingSoftware& software_of(const std::string& name) {
  const auto& all = known_software();
  const auto found =
      std::find_if(all.begin(), all.end(), [&name](const TrainingSoftware& each) { return each.name == name; });
  if (found != all.end()) return *found;
  throw UsageError("the training software " + in_quotes(name) + " is not known; it is nanotron or megatron");
}

}  // namespace muonwalk::sim
