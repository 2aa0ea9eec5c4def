#include "sim/cost_model/stage_times.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost_model/counted_traffic.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kForwardAndBackward = 6, kAttentionFlops = 12;  // per weight and token; per score

double real(Index number) { return static_cast<double>(number); }

double tokens_of(const ModelShape& model, const TrainingLayout& layout) {
  return real(model.tokens) * layout.micro_batch;
}

// The level that a group of ranks crosses which takes `span` accelerators in a row: the first that joins as many.
const NetworkLevel& level_over(const Cluster& cluster, double span) {
  for (const NetworkLevel& level : cluster.levels)
    if (level.accelerators == 0 || level.accelerators >= span) return level;
  return cluster.levels.back();
}

// Bytes per second that each of the `sharing` ranks of a node gets of the links that leave it.
double out_of_node(const Cluster& cluster, double span, double sharing, const TrainingSoftware& software) {
  return software.node_link_share * cluster.node() * level_over(cluster, span).bytes_per_second / sharing;
}

void set_efficiency(StepRates& rates, const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                    const TrainingSoftware& software) {
  rates.efficiency = software.product_efficiency;
  const MeasuredCurve& curve = cluster.accelerator.product_efficiency;
  if (!software.reads_curve || !curve.measured()) return;
  constexpr double kProductsOfALayer = 4;  // queries, keys and values; output; gate and up; down
  const CurveReading reading =
      curve.at(2 * tokens_of(model, layout) * product_weights(model) / layout.tp / kProductsOfALayer);
  rates.efficiency = reading.value;
  rates.efficiency_outside = reading.outside;
  rates.efficiency_nearest = reading.nearest_at;
}

void set_groups(StepRates& rates, const Cluster& cluster, const TrainingLayout& layout,
                const TrainingSoftware& software) {
  const int node = cluster.node() > 0 ? cluster.node() : layout.ranks();
  const double inside = cluster.levels.front().bytes_per_second;
  const double tp = layout.tp, dp = layout.dp;
  rates.tp_nodes = std::max(1, layout.tp / node);
  if (dp * tp > node) rates.dp_nodes = tp <= node ? dp * tp / node : dp;
  rates.stage_link = inside;
  rates.tp_link = tp <= node ? inside : out_of_node(cluster, tp, 1, software);
  rates.dp_link = rates.dp_nodes <= 1 ? inside : out_of_node(cluster, dp * tp, std::min<double>(tp, node), software);
  rates.tie_link = layout.nodes > 1 ? out_of_node(cluster, layout.ranks(), node, software) : inside;
  rates.expert_link = layout.ep * tp <= node ? inside : out_of_node(cluster, layout.ep * tp, node, software);
  if (rates.dp_nodes > 1) rates.group_wait_seconds = software.group_seconds_per_doubling * std::log2(rates.dp_nodes);
}

void set_host(StepRates& rates, const TrainingLayout& layout, const TrainingSoftware& software) {
  const double crossings = rates.tp_nodes - 1;
  const bool many_nodes = software.slow_path_nodes > 0 && layout.nodes >= software.slow_path_nodes;
  rates.slow_path = software.pipeline_rank_seconds > 0 && layout.tp > 1 && layout.nodes > 1 &&
                    (layout.pp > 1 || (many_nodes && rates.tp_nodes <= 2));
  rates.tp_collectives = kTpCollectives + (rates.slow_path ? kRegathered : 0);
  rates.hop_seconds = crossings > 0 ? software.node_hop_seconds * (layout.tp - 1) : 0;
  rates.floor_seconds = software.host_seconds_per_layer;
  if (rates.slow_path)
    rates.floor_seconds += software.pipeline_rank_seconds * layout.tp + rates.hop_seconds * crossings;
}

void set_layers(StageTimes& times, const ModelShape& model, const TrainingLayout& layout, const StepRates& rates) {
  const double tokens = tokens_of(model, layout), tp = layout.tp, layers = real(times.stage.layers);
  const double gathered = tokens * real(model.width) * kBf16Bytes * (tp - 1) / tp;
  times.products = layers * kForwardAndBackward * product_weights(model) * tokens / tp / rates.product_flops;
  times.attention = layers * kAttentionFlops * real(model.heads * model.head_width * model.tokens) * tokens / tp /
                    rates.attention_flops;
  times.attention += layers * tokens * real(model.heads * model.tokens) / tp * rates.score_traffic / rates.memory;
  times.elementwise =
      layers * tokens * (kWidthTraffic * real(model.width) + kHiddenTraffic * real(model.hidden)) / tp / rates.memory;
  times.tp_transfer = layers * rates.tp_collectives * gathered / rates.tp_link;
  times.tp_latency = layers * rates.hop_seconds;
  times.host = layers * rates.floor_seconds;
  if (layout.ep > 1) {
    constexpr double kExchanges = 4;  // out and back, forward and backward
    const double sent = tokens / tp * real(model.width) * kBf16Bytes * real(model.chosen) * (layout.ep - 1) / layout.ep;
    times.expert_transfer = layers * kExchanges * sent / rates.expert_link;
  }
  if (times.stage.head)
    times.head = kForwardAndBackward * real(model.vocabulary * model.width) * tokens / tp / rates.product_flops +
                 2 * gathered / rates.tp_link;
}

void set_recomputation(StageTimes& times, const TrainingLayout& layout) {
  constexpr double kOnceMore = 4.0 / 3;  // the forward pass is a third of all
  if (layout.recomputation == Recomputation::none) return;
  times.attention *= kOnceMore;
  if (layout.recomputation == Recomputation::selective) return;
  times.products *= kOnceMore;
  times.elementwise *= kOnceMore;
  times.tp_transfer *= kOnceMore;
  times.expert_transfer *= kOnceMore;
}

void set_tail(StageTimes& times, const ModelShape& model, const TrainingLayout& layout, const StepRates& rates) {
  const double dp = layout.dp, held = times.parameters;
  if (layout.dp > 1) {
    times.all_reduce = 2 * (dp - 1) / dp * kGradientBytes * held / rates.dp_link + rates.group_wait_seconds;
    if (layout.zero > 0)
      times.all_gather = (dp - 1) / dp * kWeightBytes * held / rates.dp_link + rates.group_wait_seconds;
  }
  times.optimizer = held * (kGradientTraffic + kStateTraffic / (layout.zero > 0 ? dp : 1)) / rates.memory;
  if (model.tied && layout.pp > 1 && (times.stage.embedding || times.stage.head))
    times.tied_table = kGradientBytes * real(model.vocabulary * model.width) / layout.tp / rates.tie_link;
}

StageTimes times_of(const Stage& stage, bool last, const ModelShape& model, const TrainingLayout& layout,
                    const StepRates& rates) {
  const double tokens = tokens_of(model, layout);
  StageTimes times;
  times.stage = stage;
  times.parameters = stage_parameters(model, layout, stage);
  set_layers(times, model, layout, rates);
  set_recomputation(times, layout);
  times.accumulation = times.parameters * kAccumulationTraffic / rates.memory;
  if (stage.loss) times.loss = tokens * real(model.vocabulary) / layout.tp * kLogitTraffic / rates.memory;
  if (!last) {
    const Index channels = stage.head && !stage.loss ? model.vocabulary : model.width;
    times.next_stage = 2 * kBf16Bytes * tokens * (real(channels) / layout.tp) / rates.stage_link;
  }
  set_tail(times, model, layout, rates);
  return times;
}

}  // namespace

StepRates step_rates(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                     const TrainingSoftware& software) {
  StepRates rates;
  set_efficiency(rates, model, cluster, layout, software);
  rates.product_flops = cluster.accelerator.flops_per_second * rates.efficiency;
  rates.attention_flops =
      software.fused_attention ? cluster.accelerator.flops_per_second * kAttentionEfficiency : rates.product_flops;
  rates.score_traffic = software.fused_attention ? 0 : kScoreTraffic;
  rates.memory = cluster.accelerator.memory_bytes_per_second * kMemoryEfficiency;
  set_groups(rates, cluster, layout, software);
  set_host(rates, layout, software);
  return rates;
}

double StageTimes::accelerator() const {
  return products + attention + elementwise + tp_transfer + tp_latency + expert_transfer + accumulation + head + loss +
         next_stage;
}

double StageTimes::exposed_all_reduce() const {
  constexpr double kBackward = 2.0 / 3;
  return std::max(0.0, all_reduce - kBackward * slot());
}

std::vector<StageTimes> stage_times(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                                    const TrainingSoftware& software) {
  const StepRates rates = step_rates(model, cluster, layout, software);
  const std::vector<Stage> stages = fill_stages(model, layout.pp, software);
  std::vector<StageTimes> all;
  for (const Stage& stage : stages) all.push_back(times_of(stage, &stage == &stages.back(), model, layout, rates));
  return all;
}

}  // namespace muonwalk::sim
