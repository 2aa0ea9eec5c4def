#include "src/optim/strategies/strategy_cost.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk {
namespace {

// The sums over the plans of one DP rank.
struct RankCost {
  std::vector<Index> bytes_sent;     // of each of its TP ranks
  std::vector<Index> tp_bytes_sent;  // over tp
  Index messages_sent = 0, tp_messages_sent = 0;
  double flops = 0, newton_schulz = 0;
  Index kept_bytes = 0, transient_bytes = 0;  // of the plan that needs most
};

void add_call(const Call& call, const Plan& plan, RankCost& sums) {
  const Traffic traffic = traffic_of(call, plan);
  sums.messages_sent += traffic.messages_sent;
  const int tp = plan.grid.tp();
  const bool alike = call.kind != CollectiveKind::all_reduce || call.group != "tp" || call.elements_in % tp == 0;
  if (call.group == "tp") sums.tp_messages_sent += traffic.messages_sent;
  for (int rank = 0; rank < tp; ++rank) {
    const std::size_t r = static_cast<std::size_t>(rank);
    const Index bytes =
        alike ? traffic.bytes_sent : all_reduce_traffic(rank, tp, call.elements_in, call.type).bytes_sent;
    sums.bytes_sent[r] += bytes;
    if (call.group == "tp") sums.tp_bytes_sent[r] += bytes;
  }
}

void add_plan(const Plan& plan, RankCost& sums) {
  for (const Operation& operation : plan.operations) {
    if (const Call* call = std::get_if<Call>(&operation)) add_call(*call, plan, sums);
    const Work* work = std::get_if<Work>(&operation);
    if (work == nullptr) continue;
    sums.flops += work->flops;
    if (work->phase != phases::momentum && work->phase != phases::apply) sums.newton_schulz += work->flops;
  }
  Index kept = 0;
  for (const Memory& held : held_between_steps(plan))
    if (held.what != "weights" && held.what != "gradients") kept += held.bytes();
  sums.kept_bytes = std::max(sums.kept_bytes, kept);
  sums.transient_bytes = std::max(sums.transient_bytes, transient_bytes(plan));
}

// Newton–Schulz of each matrix once, or of each of its pieces.
double flops_once(const std::vector<Parameter>& parameters, const MuonSettings& settings) {
  double sum = 0;
  for (const Parameter& parameter : parameters) {
    const auto fused = settings.fused.find(parameter.name);
    if (fused == settings.fused.end()) {
      sum += newton_schulz_flops(parameter.shape.rows, parameter.shape.cols, settings.newton_schulz);
      continue;
    }
    for (const Piece& piece : fused->second)
      sum += newton_schulz_flops(piece.count(), parameter.shape.cols, settings.newton_schulz);
  }
  return sum;
}

}  // namespace

StrategyCost strategy_cost(const Strategy& strategy, const std::vector<Parameter>& parameters, const Grid& grid,
                           Index bucket, const MuonSettings& settings) {
  if (grid.pp() != 1)
    throw std::invalid_argument("strategy_cost was given pp " + std::to_string(grid.pp()) +
                                "; call it for each pipeline stage, with the stage's own parameters");
  const Layout layout = strategy.lay_out(parameters, grid, bucket);
  const std::size_t tp = static_cast<std::size_t>(grid.tp());
  std::vector<RankCost> ranks(static_cast<std::size_t>(grid.dp()));
  for (RankCost& rank : ranks) rank.bytes_sent.resize(tp), rank.tp_bytes_sent.resize(tp);
  for (int step = 0; step < strategy.period; ++step) {
    const auto optimizer = strategy.optimizer(layout, settings, step);
    for (int dp = 0; dp < grid.dp(); ++dp)
      add_plan(optimizer->plan(layout, grid.place(grid.rank(dp, 0))), ranks[static_cast<std::size_t>(dp)]);
  }

  StrategyCost cost;
  double newton_schulz = 0;
  const double steps = strategy.period, dp = grid.dp();
  for (const RankCost& rank : ranks) {
    for (const Index bytes : rank.bytes_sent) {
      cost.most_bytes_sent = std::max(cost.most_bytes_sent, static_cast<double>(bytes) / steps);
      cost.mean_bytes_sent += static_cast<double>(bytes) / steps / grid.size();
    }
    for (const Index bytes : rank.tp_bytes_sent)
      cost.most_tp_bytes_sent = std::max(cost.most_tp_bytes_sent, static_cast<double>(bytes) / steps);
    cost.most_tp_messages_sent =
        std::max(cost.most_tp_messages_sent, static_cast<double>(rank.tp_messages_sent) / steps);
    cost.most_messages_sent = std::max(cost.most_messages_sent, static_cast<double>(rank.messages_sent) / steps);
    cost.most_flops = std::max(cost.most_flops, rank.flops / steps);
    cost.mean_flops += rank.flops / steps / dp;
    newton_schulz += rank.newton_schulz / steps * grid.tp();
    cost.most_kept_bytes = std::max(cost.most_kept_bytes, rank.kept_bytes);
    cost.most_transient_bytes = std::max(cost.most_transient_bytes, rank.transient_bytes);
  }
  if (const double once = flops_once(parameters, settings); once > 0) cost.redundancy = newton_schulz / once;
  return cost;
}

}  // namespace muonwalk
