#include "tools/scale/muon_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {
namespace {

bool shared_with_adamw(Phase phase) { return phase == phases::reduce_gradients || phase == phases::gather_weights; }

// Newton–Schulz of a plan, each work by its own size.
struct ProductTime {
  double seconds = 0, least = 0, most = 0, flops = 0;
  ProductEfficiency last;          // where it comes from
  std::optional<Outside> outside;  // the FLOPs of a product whose efficiency was not measured

  void add(const Work& work, int ns_steps, const Accelerator& device) {
    // Three products per step; the mean of their FLOPs says how efficient they are.
    last = product_efficiency(device, work.flops / (3.0 * std::max(1, ns_steps)));
    const double at_peak = work.flops / device.flops_per_second;
    flops += work.flops;
    seconds += at_peak / last.value;
    least += at_peak / last.high;
    most += at_peak / last.low;
    if (last.outside) outside = last.outside;
  }
  // Of all of it: FLOPs over what the peak would do in this time.
  TermInput efficiency(const Accelerator& device) const {
    const auto share = [&](double time) { return time > 0 ? flops / (time * device.flops_per_second) : 1; };
    TermInput input{"efficiency", share(seconds), "", seconds > 0 ? last.source : "nothing to do"};
    if (least < most) input.low = share(most), input.high = share(least);
    input.elsewhere = last.elsewhere;
    return input;
  }
};

// What one kind of transfer amounts to.
struct TransferTime {
  double seconds = 0, latency = 0, bytes = 0;
  int calls = 0;
  std::optional<Outside> outside;  // units of a level that take part, where that was not measured
};

double whole_bytes(const Call& call, int ranks) {
  const double size = static_cast<double>(element_size(call.type));
  switch (call.kind) {
    case CollectiveKind::all_gather:
      return size * static_cast<double>(call.elements_in) * ranks;
    case CollectiveKind::recv:
      return size * static_cast<double>(call.elements_out);
    case CollectiveKind::all_to_all:
      // A plan leaves out what a rank has for itself (plan.hpp), which the formulas of an all-to-all count.
      return size * static_cast<double>(std::max(call.elements_in, call.elements_out)) * ranks / (ranks - 1);
    default:
      return size * static_cast<double>(std::max(call.elements_in, call.elements_out));
  }
}

// What a ring makes one rank send of it.
double sent_bytes(const Call& call, double whole, int ranks) {
  const double others = ranks > 1 ? static_cast<double>(ranks - 1) / ranks : 0.0;
  if (call.kind == CollectiveKind::all_reduce) return 2 * whole * others;
  return call.kind == CollectiveKind::recv ? whole : whole * others;
}

// A sum over a plan: what comes beyond AdamW.
class PlanSum {
 public:
  PlanSum(const MuonSetup& setup, const Cluster& cluster, int dp_stride, const std::function<void(const Work&)>& each)
      : setup_(setup), cluster_(cluster), dp_stride_(dp_stride), each_(each) {}

  void add(const Plan& plan) {
    Phase phase = "";
    for (const Operation& operation : plan.operations) {
      if (const Work* work = std::get_if<Work>(&operation)) {
        phase = work->phase;
        if (phase != phases::momentum && phase != phases::apply && work->flops > 0) {
          products_.add(*work, setup_.settings.newton_schulz.steps, cluster_.accelerator);
          if (each_) each_(*work);
        }
      } else if (const Call* call = std::get_if<Call>(&operation)) {
        if (!shared_with_adamw(phase)) add_call(*call, phase, plan.grid);
      }
    }
    transient_ = std::max(transient_, static_cast<double>(transient_bytes(plan)));
    ++plans_;
  }

  // The mean over the plans that were added.
  MuonCost cost() const {
    MuonCost cost;
    cost.ns_steps = setup_.settings.newton_schulz.steps;
    const double steps = plans_;
    cost.flops = products_.flops / steps;
    cost.transient_bytes = transient_;
    Formula newton_schulz = in("FLOPs", cost.flops, "FLOP", "the plan of the busiest rank") /
                            (in("peak", cluster_.accelerator.flops_per_second, "FLOP/s", "the cluster's accelerator") *
                             Formula(products_.efficiency(cluster_.accelerator)));
    if (products_.outside)
      newton_schulz =
          with(std::move(newton_schulz), {"a product", products_.outside->at, "FLOP",
                                          "of those outside of the curve of efficiencies", products_.outside->nearest});
    cost.terms.push_back(term_of(terms::newton_schulz, std::move(newton_schulz)));
    for (const TermKind* kind :
         {&terms::dp_gather, &terms::dp_transfers, &terms::tp_gather, &terms::tp_sums, &terms::to_workers}) {
      if (transfers_.count(kind) == 0) continue;
      const TransferTime& transfer = transfers_.at(kind);
      const double bytes = transfer.bytes / steps;
      Formula time = with(in("latency of all calls", transfer.latency / steps, "s", "the cluster's levels"),
                          {"calls", transfer.calls / steps, "", "its plan"}) +
                     in("bytes sent", bytes, "B", "its plan, as a ring sends them") /
                         in("bandwidth", bandwidth(transfer), "B/s", "the cluster's levels");
      if (transfer.outside)
        time = with(std::move(time), {"units that take part", transfer.outside->at, "",
                                      "of the level where bandwidth was measured", transfer.outside->nearest});
      cost.bytes_sent += bytes;
      cost.terms.push_back(term_of(*kind, std::move(time)));
      cost.terms.back().bytes_sent = bytes;
    }
    return cost;
  }

 private:
  static Formula in(const char* name, double value, const char* unit, const char* source) {
    return Formula({name, value, unit, source});
  }

  static double bandwidth(const TransferTime& transfer) {
    const double moving = transfer.seconds - transfer.latency;
    return moving > 0 ? transfer.bytes / moving : std::numeric_limits<double>::infinity();
  }

  static const TermKind& kind_of(const Call& call, Phase phase) {
    if (call.kind == CollectiveKind::all_to_all) return terms::to_workers;
    if (call.group == "tp") return call.kind == CollectiveKind::all_reduce ? terms::tp_sums : terms::tp_gather;
    return phase == phases::dp_gather ? terms::dp_gather : terms::dp_transfers;
  }

  void add_call(const Call& call, Phase phase, const Grid& grid) {
    const std::optional<CallCost> cost = call_cost(call, grid, dp_stride_, cluster_);
    if (!cost) return;
    TransferTime& transfer = transfers_[&kind_of(call, phase)];
    transfer.seconds += cost->seconds.total();
    transfer.latency += cost->seconds.latency;
    transfer.bytes += cost->bytes_sent;
    if (cost->seconds.outside) transfer.outside = cost->seconds.outside;
    ++transfer.calls;
  }

  const MuonSetup& setup_;
  const Cluster& cluster_;
  int dp_stride_;
  const std::function<void(const Work&)>& each_;
  std::map<const TermKind*, TransferTime> transfers_;
  ProductTime products_;
  double transient_ = 0;
  int plans_ = 0;
};

}  // namespace

StageMatrices stage_matrices(const ModelShape& model, int pp, int ep) {
  if (pp > model.layers)
    throw UsageError(fmt::format("pp {} is more than the {} layers of {}; a stage needs a layer at least", pp,
                                 model.layers, model.name));
  if (ep > 1 && (model.experts.count == 0 || model.experts.count % ep != 0))
    throw UsageError(fmt::format("ep {} does not divide the {} experts of {}", ep, model.experts.count, model.name));
  StageMatrices matrices;
  const Index layers = (model.layers + pp - 1) / pp;
  for (Index layer = 0; layer < layers; ++layer) {
    int number = 0;
    for (const TensorClass& each : model.tensors) {
      if (!each.muons()) continue;
      const bool expert = each.kind == TensorKind::expert;
      // As many of each layer's as make up the whole model's in the end.
      Index here = (layer + 1) * each.count / model.layers - layer * each.count / model.layers;
      if (expert) here = (here + ep - 1) / ep;
      for (Index i = 0; i < here; ++i)
        (expert ? matrices.experts : matrices.dense)
            .push_back({fmt::format("layer{}.{}", layer, number++), each.shape, each.tp_split_dim});
    }
  }
  return matrices;
}

MuonShare muon_share(const ModelShape& model, const TrainingLayout& layout, double flops, int ns_steps) {
  const double once = model.newton_schulz_flops(ns_steps);
  double visited = 0;  // weights, by a token
  for (const TensorClass& each : model.tensors) {
    if (!each.muons()) continue;
    const double chosen = static_cast<double>(model.experts.chosen) / static_cast<double>(model.experts.count);
    visited += each.all_elements() * (each.kind == TensorKind::expert ? chosen : 1);
  }
  MuonShare share;
  share.steps = ns_steps;
  share.side = once / ns_steps / (6 * visited);
  share.batch_tokens =
      static_cast<double>(layout.dp) * layout.micro_batch * layout.accumulation * static_cast<double>(model.tokens);
  share.repeats = flops * layout.ranks() / once;
  return share;
}

std::optional<CallCost> call_cost(const Call& call, const Grid& grid, int dp_stride, const Cluster& cluster) {
  const bool tp = call.group == "tp";
  const int ranks = tp ? grid.tp() : grid.dp();
  if (call.kind == CollectiveKind::send || call.kind == CollectiveKind::wait || ranks == 1) return std::nullopt;
  const double whole = whole_bytes(call, ranks);
  return CallCost{collective_seconds(call.kind, whole, cluster, group_spread(cluster, ranks, tp ? 1 : dp_stride)),
                  sent_bytes(call, whole, ranks)};
}

Plan busiest_plan(const MuonSetup& setup, const Layout& layout, int step) {
  const std::vector<double> work = setup.strategy.newton_schulz_work(layout, setup.settings.newton_schulz.steps);
  const int busiest = static_cast<int>(std::max_element(work.begin(), work.end()) - work.begin());
  return setup.strategy.optimizer(layout, setup.settings, step)
      ->plan(layout, layout.grid.place(layout.grid.rank(busiest, 0)));
}

MuonCost muon_cost(const std::vector<Parameter>& matrices, int dp, int tp, int dp_stride, Index bucket,
                   const MuonSetup& setup, const Cluster& cluster, const std::function<void(const Work&)>& each) {
  const Layout layout = setup.strategy.lay_out(matrices, Grid().dp(dp).tp(tp), bucket);
  PlanSum sum(setup, cluster, dp_stride, each);
  for (int step = 0; step < setup.strategy.period; ++step) sum.add(busiest_plan(setup, layout, step));
  return sum.cost();
}

MuonCost muon_cost(const ModelShape& model, const TrainingLayout& layout, const MuonSetup& setup,
                   const Cluster& cluster) {
  const int dp = layout.dp, tp = layout.tp, ep = layout.ep;
  if (dp % ep != 0) throw UsageError(fmt::format("ep {} does not divide dp {}", ep, dp));
  const StageMatrices stage = stage_matrices(model, layout.pp, ep);
  MuonCost cost = muon_cost(stage.dense, dp, tp, tp, megatron_bucket(dp), setup, cluster);
  if (stage.experts.empty()) return cost;
  const int sharers = dp / ep;
  const MuonCost experts = muon_cost(stage.experts, sharers, tp, tp * ep, megatron_bucket(sharers), setup, cluster);
  for (Term term : experts.terms) cost.terms.push_back(std::move(term));
  cost.flops += experts.flops;
  cost.bytes_sent += experts.bytes_sent;
  cost.transient_bytes = std::max(cost.transient_bytes, experts.transient_bytes);
  return cost;
}

}  // namespace muonwalk::sim
