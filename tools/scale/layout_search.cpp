#include "tools/scale/layout_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kMostTp = 64;
constexpr Index kMostSequences = 1 << 24;
constexpr std::size_t kWithEveryStrategy = 12;  // layouts

std::vector<int> divisors_up_to(int number, Index most) {
  std::vector<int> divisors;
  for (int d = 1; d <= number && d <= most; ++d)
    if (number % d == 0) divisors.push_back(d);
  return divisors;
}

// Whether groups of these ranks and strides lie evenly in the cluster's levels.
bool lie_evenly(const Cluster& cluster, std::initializer_list<std::pair<int, int>> groups) {
  try {
    for (const auto& [ranks, stride] : groups) group_spread(cluster, ranks, stride);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// Whether TP of this size divides the heads of a model, and each matrix that it cuts.
bool can_be_cut(const ModelShape& model, int tp) {
  if (model.heads % tp != 0) return false;
  return std::all_of(model.tensors.begin(), model.tensors.end(), [tp](const TensorClass& each) {
    // A vocabulary is padded.
    if (!each.muons() || each.tp_split_dim == SplitDim::none) return true;
    return (each.tp_split_dim == SplitDim::rows ? each.shape.rows : each.shape.cols) % tp == 0;
  });
}

// All ways to train on this grid, which is in `layout`; none where dp does not divide the batch.
std::vector<TrainingLayout> layouts_on(const LayoutSearch& search, TrainingLayout layout, int sequences) {
  std::vector<TrainingLayout> layouts;
  if (sequences % layout.dp != 0) return layouts;
  layout.nodes = (layout.ranks() + search.cluster.node() - 1) / search.cluster.node();
  layout.zero = 1;
  layout.ep = expert_ranks(search.model, search.cluster, layout.dp, layout.tp);
  const int own = sequences / layout.dp;
  for (const int micro_batch : {1, 2, 4, 8}) {
    if (own % micro_batch != 0 || own / micro_batch < layout.pp - 1) continue;
    layout.micro_batch = micro_batch;
    layout.accumulation = own / micro_batch;
    for (const Recomputation recomputation : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
      // Fused attention keeps nothing that could be recomputed.
      if (recomputation == Recomputation::selective && search.software.fused_attention) continue;
      layout.recomputation = recomputation;
      layouts.push_back(layout);
    }
  }
  return layouts;
}

bool faster(const FoundLayout& a, const FoundLayout& b) {
  return a.prediction.step_seconds() < b.prediction.step_seconds();
}

// Muon's cost does not depend on micro-batches, so it is worked out once per grid and strategy.
using MuonCosts = std::map<std::tuple<int, int, int, char>, MuonCost>;

const MuonCost& cost_of(const LayoutSearch& search, const TrainingLayout& layout, const Strategy& strategy,
                        MuonCosts& costs) {
  const auto [cost, added] = costs.try_emplace({layout.dp, layout.tp, layout.pp, strategy.letter});
  if (added) cost->second = muon_cost(search.model, layout, {strategy}, search.cluster);
  return cost->second;
}

// Of each grid the fastest layout, in the order of their speeds; `found` is in that order.
std::vector<FoundLayout> fastest_of_each_grid(std::vector<FoundLayout> found) {
  std::set<std::tuple<int, int, int>> seen;
  std::vector<FoundLayout> best;
  for (FoundLayout& each : found)
    if (seen.insert({each.layout.dp, each.layout.tp, each.layout.pp}).second) best.push_back(std::move(each));
  return best;
}

// Takes the fastest strategy for each of the first ones.
void try_every_strategy(const LayoutSearch& search, MuonCosts& costs, std::vector<FoundLayout>& best) {
  for (std::size_t i = 0; i < std::min(best.size(), kWithEveryStrategy); ++i)
    for (const Strategy& strategy : strategies()) {
      if (!strategy.is_muon) continue;
      const StepQuestion question{search.model, search.cluster, search.software, best[i].layout};
      FoundLayout other{best[i].layout, strategy,
                        predict_muon(question, cost_of(search, best[i].layout, strategy, costs))};
      if (other.prediction.fits && faster(other, best[i])) best[i] = std::move(other);
    }
  std::stable_sort(best.begin(), best.end(), faster);
}

std::string lost_time(double seconds) {
  return seconds == 0 ? "0 ms" : seconds < 1 ? seconds_text(seconds) : seconds_text(seconds, 4);
}

}  // namespace

int batch_sequences(const ModelShape& model, int gpus, const Batch& batch) {
  const bool fixed = batch.tokens > 0 && batch.per_gpu == 0;
  const Index tokens = fixed               ? batch.tokens
                       : batch.per_gpu > 0 ? std::max(batch.tokens, batch.per_gpu * gpus)
                                           : model.batch_tokens;
  if (fixed && tokens % model.tokens != 0)
    throw UsageError(
        fmt::format("--batch-tokens {} is not a whole number of the sequences of {}, which have {} tokens; try {}",
                    number_text(tokens), model.name, number_text(model.tokens),
                    number_text((tokens / model.tokens + 1) * model.tokens)));
  const Index wanted = (tokens + model.tokens - 1) / model.tokens;
  Index odd = gpus;
  while (odd % 2 == 0) odd /= 2;
  Index sequences = fixed || wanted % odd == 0 ? wanted : odd;
  while (sequences < wanted) sequences *= 2;
  if (sequences > kMostSequences)
    throw UsageError(fmt::format("a batch of {} tokens is more than {} sequences of {}; take a smaller one",
                                 number_text(tokens), number_text(kMostSequences), number_text(model.tokens)));
  return static_cast<int>(sequences);
}

std::string batch_text(const ModelShape& model, std::int64_t sequences) {
  const Index tokens = sequences * model.tokens;
  const std::string text =
      fmt::format("{} tokens per step ({} of {}), ", number_text(tokens),
                  sequences == 1 ? "1 sequence" : number_text(sequences) + " sequences", number_text(model.tokens));
  if (tokens == model.batch_tokens) return text + "the default, which " + model.batch_source;
  return text + fmt::format("where {} is what {}", number_text(model.batch_tokens), model.batch_source);
}

int expert_ranks(const ModelShape& model, const Cluster& cluster, int dp, int tp) {
  if (model.experts.count == 0) return 1;
  const int most = static_cast<int>(std::gcd(model.experts.count, static_cast<Index>(dp)));
  for (int ep = most; ep > 1; --ep)
    if (most % ep == 0 && lie_evenly(cluster, {{ep, tp}, {dp / ep, tp * ep}})) return ep;
  return 1;
}

std::vector<TrainingLayout> possible_layouts(const LayoutSearch& search) {
  const int node = search.cluster.node();
  if (search.gpus > kMostOfALayout)
    throw UsageError(fmt::format("--gpus {} is more than the {} that a layout can have", number_text(search.gpus),
                                 number_text(kMostOfALayout)));
  if (search.gpus < 1 || (search.gpus > node && search.gpus % node != 0))
    throw UsageError(fmt::format("--gpus {} is not a whole number of nodes of {}; try {}", search.gpus, node,
                                 std::max(1, search.gpus / node) * node));
  const int sequences = batch_sequences(search.model, search.gpus, search.batch);
  std::vector<TrainingLayout> layouts;
  for (const int tp : divisors_up_to(search.gpus, std::min<Index>(kMostTp, search.model.heads))) {
    if (!can_be_cut(search.model, tp)) continue;
    for (const int pp : divisors_up_to(search.gpus / tp, search.model.layers)) {
      TrainingLayout layout;
      layout.dp = search.gpus / tp / pp;
      layout.tp = tp;
      layout.pp = pp;
      if (!lie_evenly(search.cluster, {{tp, 1}, {layout.dp, tp}, {pp, tp * layout.dp}})) continue;
      for (const TrainingLayout& each : layouts_on(search, layout, sequences)) layouts.push_back(each);
    }
  }
  if (layouts.empty())
    throw UsageError(fmt::format(
        "no layout of {} uses {} GPUs of {} with {} in a batch; try a power of two "
        "of nodes, or another --batch-tokens: dp has to divide its sequences",
        search.model.name, search.gpus, visible_name(search.cluster.name), count_text(sequences, "sequence")));
  return layouts;
}

FoundLayouts find_layouts(const LayoutSearch& search, int most) {
  FoundLayouts found;
  MuonCosts costs;
  const Strategy by_work = owner_by_work();
  double least_bytes = 0;
  for (const TrainingLayout& layout : possible_layouts(search)) {
    ++found.tried;
    const StepQuestion question{search.model, search.cluster, search.software, layout};
    FoundLayout each{layout, {}, {}};
    if (search.muon) each.strategy = by_work;
    each.prediction =
        search.muon ? predict_muon(question, cost_of(search, layout, by_work, costs)) : predict_adamw(question);
    const double bytes = total(each.prediction.bytes);
    least_bytes = least_bytes == 0 ? bytes : std::min(least_bytes, bytes);
    if (!each.prediction.fits) continue;
    ++found.fit;
    found.best.push_back(std::move(each));
  }
  if (found.best.empty())
    throw UsageError(
        fmt::format("{} does not fit on {} GPUs of {} in any of {} layouts: the leanest needs {:.1f} GiB "
                    "of {:.1f}; take more GPUs",
                    search.model.name, search.gpus, visible_name(search.cluster.name), found.tried,
                    least_bytes / kGibibyte, search.cluster.accelerator.memory_bytes / kGibibyte));
  std::stable_sort(found.best.begin(), found.best.end(), faster);
  found.best = fastest_of_each_grid(std::move(found.best));
  if (search.muon) try_every_strategy(search, costs, found.best);
  found.best.resize(std::min(found.best.size(), static_cast<std::size_t>(most)));
  return found;
}

std::string why_slower(const FoundLayout& best, const FoundLayout& other) {
  std::map<std::string_view, double> slower;
  for (const Term& term : other.prediction.seconds) slower[term.kind->name] += term.amount;
  for (const Term& term : best.prediction.seconds) slower[term.kind->name] -= term.amount;
  std::vector<std::pair<double, std::string_view>> losses;
  for (const auto& [name, seconds] : slower) losses.emplace_back(seconds, name);
  std::sort(losses.rbegin(), losses.rend());
  const double all = other.prediction.step_seconds() - best.prediction.step_seconds();
  const double worth = std::abs(all) / 10;  // what is named makes up a tenth of the difference, at least
  std::string lost, gained;
  for (const auto& [seconds, name] : losses)
    if (seconds > worth)
      lost += fmt::format("{}{} by {}", lost.empty() ? ": it loses " : ", ", lost_time(seconds), name);
  std::reverse(losses.begin(), losses.end());
  for (const auto& [seconds, name] : losses)
    if (-seconds > worth)
      gained += fmt::format("{}{} by {}", gained.empty() ? "; it gains " : ", ", lost_time(-seconds), name);
  return lost_time(all) + " slower" + lost + gained;
}

}  // namespace muonwalk::sim
