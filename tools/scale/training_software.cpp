#include "tools/scale/training_software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

TrainingSoftware nanotron() {
  TrainingSoftware software;
  software.name = "nanotron";
  for (const FittedConstant& each : fitted_constants()) software.*each.member = each.value;
  software.fitted_on = "H100";
  software.slow_path_nodes = 64;
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

const char* recomputation_name(Recomputation recomputation) {
  if (recomputation == Recomputation::none) return "none";
  return recomputation == Recomputation::selective ? "selective" : "full";
}

Recomputation parse_recomputation(const std::string& word) {
  for (const Recomputation each : {Recomputation::none, Recomputation::selective, Recomputation::full})
    if (word == recomputation_name(each)) return each;
  throw UsageError("--recompute " + as_typed(word) + " is not known; it is none, selective or full");
}

void require_sizes(const TrainingLayout& layout) {
  for (const auto& [name, size] : {std::pair{"nodes", layout.nodes},
                                   {"dp", layout.dp},
                                   {"tp", layout.tp},
                                   {"pp", layout.pp},
                                   {"the micro-batch", layout.micro_batch},
                                   {"the accumulation", layout.accumulation},
                                   {"ep", layout.ep},
                                   {"the number of chunks", layout.chunks}})
    if (size < 1 || size > kMostOfALayout)
      throw UsageError(
          fmt::format("{} is {}; it can be anything from 1 to {}", name, size, number_text(kMostOfALayout)));
  const std::int64_t ranks = std::int64_t{layout.dp} * layout.tp * layout.pp;
  if (ranks > kMostOfALayout)
    throw UsageError(fmt::format("dp {} × tp {} × pp {} makes {} ranks; a layout has at most {}", layout.dp, layout.tp,
                                 layout.pp, number_text(ranks), number_text(kMostOfALayout)));
}

void require_sensible(const TrainingLayout& layout, int node) {
  require_sizes(layout);
  if (layout.zero != 0 && layout.zero != 1)
    throw UsageError(fmt::format("ZeRO stage {} is not modelled; it can be 0 or 1", layout.zero));
  if (layout.dp % layout.ep != 0)
    throw UsageError(
        fmt::format("ep {} does not divide dp {}; experts are dealt out over DP ranks", layout.ep, layout.dp));
  const std::int64_t ranks = std::int64_t{layout.dp} * layout.tp * layout.pp, there = std::int64_t{layout.nodes} * node;
  if (ranks != there)
    throw UsageError(
        fmt::format("dp {} × tp {} × pp {} makes {} ranks, and {} of {} GPUs have {}; the product must be "
                    "that number",
                    layout.dp, layout.tp, layout.pp, number_text(ranks), count_text(layout.nodes, "node"), node,
                    number_text(there)));
}

std::string text(const TrainingLayout& layout) {
  std::string grid = fmt::format("dp {} × tp {}", layout.dp, layout.tp);
  if (layout.pp > 1) grid += fmt::format(" × pp {}", layout.pp);
  if (layout.ep > 1) grid += fmt::format(", ep {}", layout.ep);
  return fmt::format("{}, ZeRO-{}, {} of {}", grid, layout.zero,
                     layout.accumulation == 1 ? "1 micro-batch" : number_text(layout.accumulation) + " micro-batches",
                     number_text(layout.micro_batch));
}

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

const std::vector<FittedConstant>& fitted_constants() {
  static const std::vector<FittedConstant> all = {
      {&TrainingSoftware::product_efficiency, "product efficiency", 0.493, "1",
       "share of the accelerator's peak that matrix products reach; it does not grow with the width of the model"},
      {&TrainingSoftware::host_seconds_per_layer, "host seconds per layer", 4.46e-3, "s",
       "forward and backward of one layer are not launched faster than this, however small they are"},
      {&TrainingSoftware::node_hop_seconds, "node hop seconds", 0.49e-3, "s",
       "latency per layer and hop of the ring of a TP group that leaves its node: about eight collectives of 60 µs"},
      {&TrainingSoftware::pipeline_rank_seconds, "pipeline rank seconds", 2.09e-3, "s",
       "what a layer takes longer to launch per TP rank in pipelines over several nodes: the software's slow path"},
      {&TrainingSoftware::node_link_share, "node link share", 0.636, "1",
       "share of the links out of a node that the collectives of training reach, all GPUs of the node together"},
      {&TrainingSoftware::group_seconds_per_doubling, "group seconds per doubling", 0.020, "s",
       "what a collective over DP ranks waits, per doubling of the nodes: for its latency and for the slowest rank"},
      {&TrainingSoftware::remap_seconds_per_gibibyte, "remap seconds per GiB", 0.1, "s",
       "what a micro-batch loses per GiB beyond the card, with one stage or on one node: the allocator frees memory "
       "and maps it again"},
      {&TrainingSoftware::usable_share, "usable share", 0.825, "1",
       "share of the card that counted memory can fill: the rest is context, NCCL's buffers and fragments"}};
  return all;
}

}  // namespace muonwalk::sim
