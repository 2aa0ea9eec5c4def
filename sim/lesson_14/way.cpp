#include "sim/lesson_14/way.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/optim/named_slice.hpp"

namespace muonwalk::sim {

std::vector<Parameter> memory_model() {
  std::vector<Parameter> parameters = {{"embedding", {96, 16}, SplitDim::rows}};
  for (const int layer : {0, 1}) {
    const std::string prefix = fmt::format("layer{}.", layer);
    parameters.push_back({prefix + "wqkv", {48, 16}, SplitDim::rows});
    parameters.push_back({prefix + "wo", {16, 16}, SplitDim::columns});
    parameters.push_back({prefix + "up", {64, 16}, SplitDim::rows});
    parameters.push_back({prefix + "down", {16, 64}, SplitDim::columns});
  }
  parameters.push_back({"norm", {1, 16}, SplitDim::none, 0, 1});
  return route(std::move(parameters), usual_groups({}, {}));
}

bool is_muons(const Way& way, const Buffer& buffer) { return way.muon && buffer.group == 0; }

AdamWSettings adamw_of_group(int group) {
  AdamWSettings settings;
  if (group == 2) settings.weight_decay = 0;
  return settings;
}

Layout layout_of(const Way& way, const std::vector<Parameter>& parameters, const Grid& grid, Index bucket_capacity) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.bucket_capacity = bucket_capacity;
  if (way.sharded) return plan_layout(parameters, grid, options);
  options.ownership = Ownership::matrices;
  return plan_layout(parameters, Grid().tp(grid.tp()), options);
}

GroupedOptimizer optimizer_of(const Way& way, const std::vector<Parameter>& parameters, const MuonSettings& muon) {
  std::vector<ParameterGroup> groups = usual_groups(muon, adamw_of_group(0));
  if (!way.muon) groups[0].make = groups[1].make;
  return GroupedOptimizer(groups, parameters);
}

Plan plan_of(const Way& way, const GroupedOptimizer& optimizer, const Layout& layout, const Grid& grid,
             const Place& place) {
  if (way.sharded) return with_master_weights(optimizer.plan(layout, place), layout);
  const Place alone = layout.grid.place(place.tp);
  return replicated(with_master_weights(optimizer.plan(layout, alone), layout), grid, place);
}

RankMemory memory_of(const Way& way, const GroupedOptimizer& optimizer, const Layout& layout, const Grid& grid,
                     const Place& place) {
  return planned_memory(plan_of(way, optimizer, layout, grid, place),
                        plan_of(way, optimizer, layout.of_group(0), grid, place));
}

Buckets own_gradients(const Training& data, int step, const Layout& layout, const RoundedBuckets& weights,
                      const Seat& seat) {
  const std::vector<NamedMatrix> slices = unpack_buckets(layout, widened(weights), seat.place.tp);
  return pack_slices(layout, data.own_gradients(step, seat.grid.dp(), seat.place.dp, slices));
}

std::vector<NamedMatrix> masters_and_weights(const Buckets& masters, const std::vector<NamedMatrix>& weights) {
  std::vector<NamedMatrix> all;
  for (std::size_t b = 0; b < masters.size(); ++b)
    for (std::size_t k = 0; k < masters[b].size(); ++k) {
      const Flat& shard = masters[b][k];
      all.push_back({fmt::format("master weights of bucket {}.{}", b, k),
                     Matrix(1, static_cast<Index>(shard.size()), shard), 0, 0});
    }
  all.insert(all.end(), weights.begin(), weights.end());
  return all;
}

std::vector<NamedMatrix> masters_and_weights(const std::vector<Parameter>& parameters,
                                             const std::vector<NamedMatrix>& whole, const Layout& layout,
                                             const Place& place, int dp_rank) {
  std::vector<Matrix> slices;
  std::vector<NamedMatrix> weights;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    weights.push_back(named_slice(parameters[p], whole[p].matrix, layout.grid.tp(), place.tp));
    slices.push_back(weights.back().matrix);
    round_to_bf16(weights.back().matrix.data(), weights.back().matrix.size());
  }
  return masters_and_weights(shards_of(layout, pack_slices(layout, slices), dp_rank), weights);
}

}  // namespace muonwalk::sim
