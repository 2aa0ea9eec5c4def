#include "tools/scale/training_software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/scale/muonwalk_scale_texts.hpp"

namespace muonwalk::sim {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TrainingSoftware, name, product_efficiency, fitted_on, reads_curve,
                                                host_seconds_per_layer, node_hop_seconds, pipeline_rank_seconds,
                                                slow_path_nodes, node_link_share, group_seconds_per_doubling,
                                                remap_seconds_per_gibibyte, usable_share, elementwise_share,
                                                logit_share, gradient_bytes, fresh_gradient_bytes,
                                                keeps_gathered_inputs, fused_attention, stages_by_cost, source)

namespace {

// A part of software.json.
const nlohmann::json& facts(const char* part) {
  static const nlohmann::json all = nlohmann::json::parse(page_texts::software);
  return all.at(part);
}

const std::vector<TrainingSoftware>& known_software() {
  static const std::vector<TrainingSoftware> all = facts("software");
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
  static const std::vector<FittedConstant> all = [] {
    std::vector<FittedConstant> constants;
    for (const nlohmann::json& each : facts("fitted"))
      constants.push_back({each.at("name"), facts("software").at(0).at(each.at("member").get<std::string>()),
                           each.at("unit"), each.at("meaning")});
    return constants;
  }();
  return all;
}

TrainingSoftware fitted_without(const std::string& part) {
  const nlohmann::json& kept = facts("fitted_without");
  if (!kept.contains(part)) throw std::invalid_argument("no fit was kept without " + part);
  nlohmann::json software = facts("software").at(0);
  for (const auto& [name, value] : kept.at(part).items()) software.at(name) = value;
  return software;
}

}  // namespace muonwalk::sim
