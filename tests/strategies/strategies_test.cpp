// Every strategy, over random layouts: the bits of its reference, its plan call by call, its bytes by formula, and that
// it can be interrupted.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "src/optim/adamw_step.hpp"
#include "src/optim/serial_muon.hpp"
#include "tests/cases.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/strategies/strategy_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

constexpr std::uint64_t kSeeds = muonwalk::testing::cases(std::uint64_t{100});

/// What the random cases covered, and how often; each must have happened.
using Covered = std::map<std::string, int>;

void note(const Case& c, const Layout& layout, Covered& covered) {
  for (const Buffer& buffer : layout.buffers) {
    covered["several matrices in the one bucket of their buffer"] +=
        buffer.buckets.size() == 1 && buffer.parameters.size() > 1;
    for (const DistMeta& meta : buffer.parameters)
      covered["larger than a bucket"] +=
          layout.options.bucket_capacity > 0 && meta.shape.size() > layout.options.bucket_capacity;
  }
  covered["several buffers"] += layout.buffers.size() > 1;
  covered["more DP ranks than matrices"] += c.grid.dp() > static_cast<int>(c.parameters.size());
  for (int rank = 0; rank < c.grid.dp(); ++rank) covered["owns nothing"] += layout.shard_elements(rank) == 0;
  ++covered[precision_name(c.settings.newton_schulz.precision) +
            (" gathered in " + std::string(precision_name(c.settings.gathered())))];
  ++covered[products_name(c.settings.newton_schulz.products)];
  covered["fused"] += !c.settings.fused.empty();
}

/// What the calls of a phase make a rank send and receive.
Traffic traffic_in(const Plan& plan, Phase phase) {
  Traffic sum;
  for (const PlannedCall& each : calls_of(plan))
    if (each.phase == phase) sum += each.traffic;
  return sum;
}

Index padded_elements(const Layout& layout) {
  Index elements = 0;
  for (const Buffer& buffer : layout.buffers) elements += buffer.size;
  return elements;
}

std::vector<Plan> plans_of(const Strategy& strategy, const Layout& layout, const MuonSettings& settings, int step = 0) {
  const auto optimizer = strategy.optimizer(layout, settings, step);
  std::vector<Plan> plans;
  for (int rank = 0; rank < layout.grid.size(); ++rank)
    plans.push_back(optimizer->plan(layout, layout.grid.place(rank)));
  return plans;
}

}  // namespace

TEST_CASE("strategies: letters in order, each with a name") {
  char last = 'a' - 1;
  for (const Strategy& each : strategies()) {
    CHECK(each.letter > last);
    last = each.letter;
    CHECK(std::string(each.name) != "");
    CHECK(each.period >= 1);
  }
}

TEST_CASE("strategies: any parameters, grid and buckets: the reference's bits, and the plan call by call") {
  Covered covered;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const Strategy& strategy : all_ways()) {
      Case c = laid_out(strategy, strategy_case(seed));
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = c.layout();
      if (!takes(strategy, layout, c.settings)) {
        ++refused;
        continue;
      }
      // Some with a schedule, and some with gradients that are summed before.
      for (int step = 0; seed % 2 == 0 && step < c.steps; ++step)
        c.rates.push_back(0.7f / static_cast<float>(step + 1));
      c.settings.summed_gradients = seed % 3 == 0;
      note(c, layout, covered);
      const MakeOptimizer make = maker(strategy, c, layout);
      const auto ranks = record_steps(c, make);
      const auto reference = reference_steps(c, *make());
      for (int step = 0; step < c.steps; ++step) {
        const auto later = strategy.optimizer(layout, c.settings, step);
        for (int r = 0; r < c.grid.size(); ++r) {
          const Place place = c.grid.place(r);
          const RecordedStep& recorded = ranks[static_cast<std::size_t>(r)][static_cast<std::size_t>(step)];
          REQUIRE(first_difference(c, place, recorded.slices, reference[static_cast<std::size_t>(step)]) == "");
          REQUIRE(first_difference(later->plan(layout, place), recorded) == "");
        }
      }
    }
  MESSAGE(refused, " times a strategy refused the settings");
  CHECK(covered.size() == 12);
  for (const auto& [what, times] : covered) CHECK_MESSAGE(times > 0, what);
}

TEST_CASE("strategies: the reference of (a) to (f) is the one serial Muon, and (g) and (h) say that theirs is not") {
  for (const Strategy& strategy : strategies()) {
    CAPTURE(strategy.letter);
    CHECK(strategy.is_muon == (strategy.letter <= 'f'));
    const Layout layout = strategy.lay_out({{"w", {4, 4}}}, Grid().dp(2), 0);
    const auto reference = strategy.optimizer(layout, MuonSettings(), 0)->reference({{"w", Matrix(4, 4)}});
    const SerialOptimizer& made = *reference;
    CHECK((typeid(made) == typeid(SerialMuon)) == strategy.is_muon);  // those of (g) and (h) are derived from it
  }
}

TEST_CASE("strategies: saved after any step, resumed by others: bit for bit as if never interrupted") {
  for (std::uint64_t seed = 1; seed <= kSeeds / 2; ++seed)
    for (const Strategy& strategy : all_ways()) {
      const Case c = laid_out(strategy, strategy_case(seed));
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = c.layout();
      if (!takes(strategy, layout, c.settings)) continue;
      const MakeOptimizer make = maker(strategy, c, layout);
      const auto whole = final_states(c, make);
      for (int pause = 1; pause < c.steps; ++pause) {
        const auto resumed = final_states(c, make, pause);
        for (std::size_t r = 0; r < whole.size(); ++r) {
          REQUIRE(first_difference(whole[r], resumed[r]) == "");
          REQUIRE(whole[r].steps == c.steps);
        }
      }
    }
}

TEST_CASE("(a): before Newton–Schulz every rank receives (D − 1)/D · P elements, in bf16 of two bytes") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{50}); ++seed) {
    Case c = laid_out(gather_everything(), random_case(seed));
    INFO(c.text());
    const Layout layout = c.layout();
    const Index dp = c.grid.dp(), all = padded_elements(layout);
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      c.settings.newton_schulz.precision = precision;
      for (const Plan& plan : plans_of(gather_everything(), layout, c.settings)) {
        const Traffic traffic = traffic_in(plan, phases::dp_gather);
        CHECK(traffic.bytes_received * dp == (dp - 1) * all * (precision == Precision::bf16 ? 2 : 4));
        CHECK(traffic.bytes_sent == traffic.bytes_received);
      }
    }
  }
}

TEST_CASE("(e): each element travels to its worker and back, unless that owns it") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{100}); ++seed) {
    const Case c = laid_out(all_to_all(), strategy_case(seed));
    INFO(c.text());
    const Layout layout = c.layout();
    const std::vector<Plan> plans = plans_of(all_to_all(), layout, c.settings);
    const Index bytes = c.settings.gathered() == Precision::bf16 ? 2 : 4;
    Index expected = 0;
    for (const Buffer& buffer : layout.buffers)
      for (std::size_t i = 0; i < buffer.parameters.size(); ++i) {
        const DistMeta& meta = buffer.parameters[i];
        const int worker = worker_of(meta.parameter, plans);
        expected += (meta.shape.size() - layout.owned_range(meta, worker).size()) * bytes * c.grid.tp();
      }
    Traffic there, back;
    for (const Plan& plan : plans) {
      there += traffic_in(plan, phases::to_workers);
      back += traffic_in(plan, phases::to_owners);
      CHECK(count(plan, phases::dp_gather) == 0);
    }
    CHECK(there.bytes_sent == expected);
    CHECK(there.bytes_received == expected);
    CHECK(back.bytes_sent == expected);
    CHECK(back.bytes_received == expected);
  }
}

TEST_CASE("(c), (d): over dp nothing travels but the reduce-scatters and all-gathers of ZeRO-1") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{50}); ++seed)
    for (const Strategy& strategy : {owner_in_turn(), owner_by_work()}) {
      const Case c = laid_out(strategy, strategy_case(seed));
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = c.layout();
      const auto plans = plans_of(strategy, layout, c.settings);
      for (int r = 0; r < c.grid.size(); ++r) {
        const Plan zero1 = Zero1AdamW(AdamWSettings()).plan(layout, c.grid.place(r));
        Plan of_dp = plans[static_cast<std::size_t>(r)];
        const auto elsewhere = [](const Operation& operation) {
          const Call* call = std::get_if<Call>(&operation);
          return call != nullptr && call->group != "dp";
        };
        of_dp.operations.erase(std::remove_if(of_dp.operations.begin(), of_dp.operations.end(), elsewhere),
                               of_dp.operations.end());
        CHECK(first_difference(ledger_of(zero1), ledger_of(of_dp)) == "");
      }
    }
}

TEST_CASE("(d) over tp: one rank of a TP group orthogonalizes, and a slice travels to it and back") {
  int dealt = 0;
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{100}); ++seed)
    for (const Strategy& strategy : {all_ways().end()[-2], all_ways().back()}) {
      const Case c = laid_out(strategy, strategy_case(seed));
      INFO(c.text());
      const Layout layout = c.layout();
      const std::vector<Plan> plans = plans_of(strategy, layout, c.settings);
      const Index bytes = c.settings.gathered() == Precision::bf16 ? 2 : 4;
      for (int dp = 0; dp < c.grid.dp(); ++dp) {
        Index expected = 0;
        std::vector<double> work(static_cast<std::size_t>(c.grid.tp()));
        double largest = 0;
        for (const DistMeta& meta : layout.parameters()) {
          if (layout.owned_range(meta, dp).empty()) continue;
          std::vector<int> workers;  // of the TP group
          for (int tp = 0; tp < c.grid.tp(); ++tp)
            if (worker_of(meta.parameter, {plans[static_cast<std::size_t>(c.grid.rank(dp, tp))]}) >= 0)
              workers.push_back(tp);
          CHECK(static_cast<int>(workers.size()) == (cut_by_tp(meta) ? 1 : c.grid.tp()));
          if (!cut_by_tp(meta)) continue;
          ++dealt, expected += (meta.full_shape.size() - meta.shape.size()) * bytes;
          const double flops = newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, 5);
          work[static_cast<std::size_t>(workers[0])] += flops, largest = std::max(largest, flops);
        }
        const auto [least, most] = std::minmax_element(work.begin(), work.end());
        CHECK(*most - *least <= largest);  // dealt out over all buckets at once
        Traffic there, back;
        for (int tp = 0; tp < c.grid.tp(); ++tp) {
          const Plan& plan = plans[static_cast<std::size_t>(c.grid.rank(dp, tp))];
          there += traffic_in(plan, phases::to_workers), back += traffic_in(plan, phases::to_owners);
        }
        CHECK(there.bytes_sent == expected);
        CHECK(back.bytes_sent == expected);
      }
    }
  CHECK(dealt > 0);
}

TEST_CASE("(d) over tp: a recipe with a second moment is refused") {
  MuonSettings settings;
  settings.second_moment.used = true;
  CHECK(usage_error([&] { muon_owned_over_tp(settings); }) ==
        "one rank of a TP group can't keep a running mean of squares for all of them; take a recipe without one, or a "
        "strategy in which every TP rank orthogonalizes every matrix");
}

TEST_CASE("(f): over tp twice the bytes of (d) in bf16, as many in fp32, and over dp the same") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{50}); ++seed)
    for (const Precision precision : {Precision::bf16, Precision::fp32}) {
      Case c = laid_out(tp_duplicated(), random_case(seed));
      c.settings.newton_schulz.precision = precision;
      INFO(c.text());
      const Layout layout = c.layout();
      const auto of_f = plans_of(tp_duplicated(), layout, c.settings),
                 of_d = plans_of(owner_by_work(), layout, c.settings);
      for (std::size_t r = 0; r < of_f.size(); ++r) {
        const Ledger f = ledger_of(of_f[r]), d = ledger_of(of_d[r]);
        CHECK(f.total("dp") == d.total("dp"));
        const Index times = precision == Precision::bf16 ? 2 : 1;
        CHECK(f.total("tp").bytes_sent == times * d.total("tp").bytes_sent);
        CHECK(f.total("tp").bytes_received == times * d.total("tp").bytes_received);
        CHECK(f.total("tp").messages_sent == d.total("tp").messages_sent);
      }
    }
}
