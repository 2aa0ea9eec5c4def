// What strategies cost: sums over the plans of all ranks, and cases that can be worked out by hand.
#include "src/optim/strategies/strategy_cost.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/plan.hpp"
#include "tests/strategies/strategy_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

TEST_CASE("strategy_cost: what the plans of all ranks add up to, also where only some of them are asked") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Strategy& strategy : strategies()) {
      const Case c = strategy_case(seed);
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = lay_out(strategy, c);
      if (!takes(strategy, layout, c.settings)) continue;
      const StrategyCost cost = strategy_cost(strategy, c.parameters, c.grid, c.options.bucket_capacity, c.settings);
      double most_bytes = 0, all_bytes = 0, most_messages = 0, most_flops = 0, all_flops = 0, newton_schulz = 0;
      double tp_bytes = 0, tp_messages = 0;
      Index kept = 0, transient = 0;
      for (int r = 0; r < c.grid.size(); ++r) {
        Traffic traffic, over_tp;
        double computed = 0;
        for (int step = 0; step < strategy.period; ++step) {
          const Plan plan = strategy.optimizer(layout, c.settings, step)->plan(layout, c.grid.place(r));
          traffic += ledger_of(plan).total();
          for (const PlannedCall& call : calls_of(plan))
            if (call.call.group == "tp") over_tp += call.traffic;
          computed += flops(plan);
          newton_schulz += flops(plan) - flops(plan, phases::momentum) - flops(plan, phases::apply);
          Index between = 0, of_optimizer = 0;
          for (const Memory& memory : held_between_steps(plan)) {
            between += memory.bytes();
            if (memory.what == "momentum") of_optimizer += memory.bytes();
          }
          kept = std::max(kept, of_optimizer);
          transient = std::max(transient, peak_bytes(plan) - between);
        }
        const double steps = strategy.period;
        most_bytes = std::max(most_bytes, static_cast<double>(traffic.bytes_sent) / steps);
        all_bytes += static_cast<double>(traffic.bytes_sent) / steps;
        most_messages = std::max(most_messages, static_cast<double>(traffic.messages_sent) / steps);
        tp_bytes = std::max(tp_bytes, static_cast<double>(over_tp.bytes_sent) / steps);
        tp_messages = std::max(tp_messages, static_cast<double>(over_tp.messages_sent) / steps);
        most_flops = std::max(most_flops, computed / steps);
        all_flops += computed / steps;
      }
      double once = 0;
      for (const Parameter& each : c.parameters) {
        const auto fused = c.settings.fused.find(each.name);
        const int pieces = fused == c.settings.fused.end() ? 1 : static_cast<int>(fused->second.size());
        once += pieces * newton_schulz_flops(each.shape.rows / pieces, each.shape.cols, c.settings.newton_schulz.steps);
      }
      CHECK(cost.most_bytes_sent == doctest::Approx(most_bytes));
      CHECK(cost.mean_bytes_sent == doctest::Approx(all_bytes / c.grid.size()));
      CHECK(cost.most_messages_sent == doctest::Approx(most_messages));
      CHECK(cost.most_tp_bytes_sent == doctest::Approx(tp_bytes));
      CHECK(cost.most_tp_messages_sent == doctest::Approx(tp_messages));
      CHECK(cost.most_flops == doctest::Approx(most_flops));
      CHECK(cost.mean_flops == doctest::Approx(all_flops / c.grid.size()));
      CHECK(cost.redundancy == doctest::Approx(newton_schulz / strategy.period / once));
      CHECK(cost.most_kept_bytes == kept);
      CHECK(cost.most_transient_bytes == transient);
    }
}

namespace {

// A strategy that nobody has: in even steps ranks sum 7 elements over tp, in odd steps they compute and keep more.
struct OddMuon : Muon {
  OddMuon(const MuonSettings& settings, int steps) : Muon(settings) { steps_ = steps; }
  Plan plan(const Layout& layout, const Place& place) const override {
    Plan plan{layout.grid, place, {}};
    plan.take(10, "weights");
    plan.take(steps_ % 2 == 0 ? 3 : 4, "momentum");
    plan.work(phases::orthogonalize, {1, 1}, steps_ % 2 == 0 ? 100 : 300);
    plan.take(steps_ % 2 == 0 ? 5 : 9, "matrix");
    if (steps_ % 2 == 0) plan.call("tp", CollectiveKind::all_reduce, ElementType::float32, 7, 7);
    plan.give_back(steps_ % 2 == 0 ? 5 : 9, "matrix");
    return plan;
  }
};

std::unique_ptr<Optimizer> make_odd(const Layout&, const MuonSettings& settings, int steps) {
  return std::make_unique<OddMuon>(settings, steps);
}

}  // namespace

TEST_CASE("strategy_cost: the mean over a period, the memory of its worst step, and all TP ranks where they differ") {
  const Strategy odd = {'z', "odd", gather_everything().lay_out, make_odd, 2};
  const Grid grid = Grid().dp(2).tp(3);
  const StrategyCost cost = strategy_cost(odd, {{"w", {4, 6}}}, grid, 0, MuonSettings());
  // Of 7 elements the three ranks sum up 2, 2 and 3; each sends the others' pieces, and its own sum to both of them.
  CHECK(cost.most_bytes_sent == (4 + 2 * 3) * 4 / 2.0);
  CHECK(cost.mean_bytes_sent == doctest::Approx((2 * (5 + 2 * 2) + (4 + 2 * 3)) * 4 / 2.0 / 3));
  CHECK(cost.most_messages_sent == 2 * 2 / 2.0);
  CHECK(cost.most_flops == 200);
  CHECK(cost.mean_flops == 200);
  CHECK(cost.redundancy == doctest::Approx(6 * 200 / newton_schulz_flops(4, 6)));
  CHECK(cost.most_kept_bytes == 4 * 4);
  CHECK(cost.most_transient_bytes == 9 * 4);
}

TEST_CASE("strategy_cost: every figure of a case that can be worked out by hand") {
  // Two matrices of 4 × 6 on dp 2, one bucket of 48 elements, 24 of them on each rank, fp32.
  const std::vector<Parameter> two = {{"v", {4, 6}}, {"w", {4, 6}}};
  const double newton_schulz = 20.0 * 4 * 4 * 6 + 10.0 * 4 * 4 * 4;  // each
  const auto cost_of = [&](const Strategy& strategy) {
    return strategy_cost(strategy, two, Grid().dp(2), 0, MuonSettings());
  };
  const StrategyCost d = cost_of(owner_by_work());
  CHECK(d.most_bytes_sent == 2 * 24 * 4);  // half of the gradients, and the new weights
  CHECK(d.mean_bytes_sent == 2 * 24 * 4);
  CHECK(d.most_messages_sent == 2);
  CHECK(d.most_flops == newton_schulz + (4 + 3) * 24);
  CHECK(d.mean_flops == d.most_flops);
  CHECK(d.redundancy == 1);
  CHECK(d.most_kept_bytes == 24 * 4);
  CHECK(d.most_transient_bytes == (24 + 24 + 2 * 24 + 2 * 4 * 4) * 4);  // update, matrix, and what Newton–Schulz takes

  const StrategyCost a = cost_of(gather_everything());
  CHECK(a.most_bytes_sent == d.most_bytes_sent + 24 * 4);
  CHECK(a.redundancy == 1);  // a rank's half happens to be one of the matrices
  CHECK(a.most_transient_bytes == (48 + 24 + 2 * 24 + 2 * 4 * 4) * 4);

  const StrategyCost three = strategy_cost(gather_everything(), {{"v", {4, 6}}, {"w", {4, 6}}, {"x", {4, 6}}},
                                           Grid().dp(2), 0, MuonSettings());
  CHECK(three.redundancy == doctest::Approx(4.0 / 3));  // one is cut, and done twice
  CHECK(three.most_flops == 2 * newton_schulz + (4 + 3) * 36);

  CHECK(strategy_cost(owner_by_work(), {{"v", {4, 6}}}, Grid().dp(2), 0, MuonSettings()).mean_flops ==
        (newton_schulz + (4 + 3) * 24) / 2);
  CHECK(strategy_cost(owner_by_work(), {}, Grid().dp(2), 0, MuonSettings()).redundancy == 1);
  CHECK_THROWS_AS(strategy_cost(owner_by_work(), two, Grid().dp(2).pp(2), 0, MuonSettings()), std::invalid_argument);
}
