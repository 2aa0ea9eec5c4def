// Every strategy, over random layouts: the bits of its reference, its plan call by call, its bytes by formula, and that
// it can be interrupted.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/optim/plan_memory.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/zero1_adamw.hpp"
#include "src/strategies/all_to_all.hpp"
#include "src/strategies/strategy_cost.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kSeeds = 20;
#else
constexpr std::uint64_t kSeeds = 100;
#endif

/// A random case with up to eight DP ranks, in which some matrices are fused, and the step is now and then another
/// recipe's. Its layout is the strategy's.
Case strategy_case(std::uint64_t seed) {
  Case c = random_case(seed);
  Choices choose(seed + 1'000'000);
  if (c.grid.tp() <= 2 && choose.yes(40)) c.grid = Grid().dp(static_cast<int>(choose.between(5, 8))).tp(c.grid.tp());
  if (choose.yes(30)) c.settings = with_recipe(choose.one_of(recipes()).name, c.settings);
  if (choose.yes(15)) c.settings.gather_unrounded = true;
  for (const Parameter& each : c.parameters)
    if (each.shape.rows % 2 == 0 && choose.yes(20)) c.settings.fused[each.name] = gate_and_up(each.shape.rows);
  c.settings.threads = 1;
  return c;
}

Layout lay_out(const Strategy& strategy, const Case& c) {
  return strategy.lay_out(c.parameters, c.grid, c.options.bucket_capacity);
}

/// The case with the strategy's layout for its own.
Case laid_out(const Strategy& strategy, Case c) {
  c.options = lay_out(strategy, c).options;
  return c;
}

MakeOptimizer maker(const Strategy& strategy, const Case& c, const Layout& layout, int steps = 0) {
  return [&strategy, settings = c.settings, &layout, steps] { return strategy.optimizer(layout, settings, steps); };
}

/// Whether the strategy takes these settings. (a) to (f) take all.
bool takes(const Strategy& strategy, const Layout& layout, const MuonSettings& settings) {
  try {
    strategy.optimizer(layout, settings, 0);
    return true;
  } catch (const UsageError&) {
    REQUIRE(strategy.letter > 'f');
    return false;
  }
}

/// What the random cases covered.
struct Covered {
  int larger_than_bucket = 0;  ///< a matrix with more elements than a bucket's capacity
  int one_bucket = 0;          ///< several matrices in the one bucket of their buffer
  int more_ranks = 0;          ///< more DP ranks than matrices
  int owns_nothing = 0;        ///< a rank that owns nothing at all
  int fp32 = 0, bf16 = 0, bf16_in_fp32 = 0, eigen = 0, chain = 0, fused = 0, several_buffers = 0;
};

void note(const Case& c, const Layout& layout, Covered& covered) {
  for (const Buffer& buffer : layout.buffers) {
    covered.one_bucket += buffer.buckets.size() == 1 && buffer.parameters.size() > 1;
    for (const DistMeta& meta : buffer.parameters)
      covered.larger_than_bucket +=
          layout.options.bucket_capacity > 0 && meta.shape.size() > layout.options.bucket_capacity;
  }
  covered.several_buffers += layout.buffers.size() > 1;
  covered.more_ranks += c.grid.dp() > static_cast<int>(c.parameters.size());
  for (int rank = 0; rank < c.grid.dp(); ++rank) covered.owns_nothing += layout.shard_elements(rank) == 0;
  ++(c.settings.precision == Precision::fp32    ? covered.fp32
     : c.settings.gathered() == Precision::bf16 ? covered.bf16
                                                : covered.bf16_in_fp32);
  ++(c.settings.products == Products::eigen ? covered.eigen : covered.chain);
  covered.fused += !c.settings.fused.empty();
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

TEST_CASE("strategies: letters in order, each with a name and somebody who does it so") {
  char last = 'a' - 1;
  for (const Strategy& each : strategies()) {
    CHECK(each.letter > last);
    last = each.letter;
    CHECK(std::string(each.name) != "");
    CHECK(std::string(each.used_by) != "");
    CHECK(each.period >= 1);
  }
}

TEST_CASE("strategies: any parameters, grid and buckets: the reference's bits, and the plan call by call") {
  Covered covered;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const Strategy& strategy : strategies()) {
      const Case c = laid_out(strategy, strategy_case(seed));
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = c.layout();
      if (!takes(strategy, layout, c.settings)) {
        ++refused;
        continue;
      }
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
  for (const int count :
       {covered.larger_than_bucket, covered.one_bucket, covered.more_ranks, covered.owns_nothing, covered.fp32,
        covered.bf16, covered.bf16_in_fp32, covered.eigen, covered.chain, covered.fused, covered.several_buffers})
    REQUIRE(count > 0);
}

TEST_CASE("strategies: the reference of (a) to (f) is the one serial Muon") {
  for (const Strategy& strategy : strategies()) {
    if (strategy.letter > 'f') continue;
    const Layout layout = strategy.lay_out({{"w", {4, 4}}}, Grid().dp(2), 0);
    const auto reference = strategy.optimizer(layout, MuonSettings(), 0)->reference({{"w", Matrix(4, 4)}});
    CHECK(dynamic_cast<const SerialMuon*>(reference.get()) != nullptr);
  }
}

TEST_CASE("strategies: saved after any step, resumed by others on other threads: bit for bit as if never interrupted") {
  for (std::uint64_t seed = 1; seed <= kSeeds / 2; ++seed)
    for (const Strategy& strategy : strategies()) {
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

TEST_CASE("strategies: a state that does not fit the layout, or is another optimizer's, is refused") {
  const std::vector<Parameter> parameters = {{"w", {8, 8}}, {"v", {5, 7}}};
  for (const Strategy& strategy : strategies()) {
    CAPTURE(strategy.letter);
    const Layout layout = strategy.lay_out(parameters, Grid().dp(2), 0);
    const Layout other = strategy.lay_out({{"w", {8, 9}}, {"v", {5, 7}}}, Grid().dp(2), 0);
    const Place place = layout.grid.place(1);
    const auto make = [&] { return strategy.optimizer(layout, MuonSettings(), 0); };
    const auto saver = make();
    saver->start(layout, place, zero_buckets(layout));
    CHECK_NOTHROW(make()->resume(layout, place, saver->save()));
    CHECK_THROWS_AS(make()->resume(other, place, saver->save()), std::invalid_argument);
    SavedState renamed = saver->save();
    renamed.optimizer = "AdamW";
    CHECK_THROWS_AS(make()->resume(layout, place, renamed), std::invalid_argument);
    SavedState without = saver->save();
    without.kept.pop_back();
    CHECK_THROWS_AS(make()->resume(layout, place, without), std::invalid_argument);
  }
}

TEST_CASE("(a): before Newton–Schulz every rank receives (D − 1)/D · P elements, in bf16 of two bytes") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Case c = laid_out(gather_everything(), random_case(seed));
    INFO(c.text());
    const Layout layout = c.layout();
    const Index dp = c.grid.dp(), all = padded_elements(layout);
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      c.settings.precision = precision;
      for (const Plan& plan : plans_of(gather_everything(), layout, c.settings)) {
        const Traffic traffic = traffic_in(plan, phases::dp_gather);
        CHECK(traffic.bytes_received * dp == (dp - 1) * all * (precision == Precision::bf16 ? 2 : 4));
        CHECK(traffic.bytes_sent == traffic.bytes_received);
      }
    }
  }
}

TEST_CASE("(e): each element travels to its worker and back, unless that owns it") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Case c = laid_out(all_to_all(), strategy_case(seed));
    INFO(c.text());
    const Layout layout = c.layout();
    const AllToAllMuon optimizer(layout, c.settings);
    const Index bytes = c.settings.gathered() == Precision::bf16 ? 2 : 4;
    Index expected = 0;
    for (const Buffer& buffer : layout.buffers)
      for (std::size_t i = 0; i < buffer.parameters.size(); ++i) {
        const DistMeta& meta = buffer.parameters[i];
        const int worker = optimizer.worker(meta.buffer_idx, static_cast<int>(i));
        expected += (meta.shape.size() - layout.owned_range(meta, worker).size()) * bytes * c.grid.tp();
      }
    Traffic there, back;
    for (const Plan& plan : plans_of(all_to_all(), layout, c.settings)) {
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

TEST_CASE("(e): in bf16 a rank receives 4 (D − 1)/D² · P bytes in the mean, D/2 times less than in (a)") {
  MuonSettings settings;
  settings.precision = Precision::bf16;
  for (const int dp : {1, 2, 3, 4, 6, 8, 16})
    for (const int tp : {1, 2}) {
      // Sizes that dp divides, and a bucket for each matrix: then every rank owns one dp-th of each, the worker too.
      std::vector<Parameter> parameters;
      for (int i = 0; i < 11; ++i)
        parameters.push_back({"w" + std::to_string(i), {48 * (1 + i % 3), 6 * (1 + i % 4)}, SplitDim::rows});
      const Grid grid = Grid().dp(dp).tp(tp);
      CAPTURE(grid.text());
      const Index all = padded_elements(all_to_all().lay_out(parameters, grid, 1));
      const auto received = [&](const Strategy& strategy, std::initializer_list<Phase> phases) {
        Index sum = 0;
        for (const Plan& plan : plans_of(strategy, strategy.lay_out(parameters, grid, 1), settings))
          for (const Phase phase : phases) sum += traffic_in(plan, phase).bytes_received;
        return sum;  // of dp · tp ranks
      };
      const Index of_a = received(gather_everything(), {phases::dp_gather});
      const Index of_e = received(all_to_all(), {phases::to_workers, phases::to_owners});
      CHECK(of_a == dp * tp * 2 * (dp - 1) * all / dp);
      CHECK(of_e * dp * dp == dp * tp * 4 * (dp - 1) * all);
      CHECK(of_a * 2 == of_e * dp);
    }
}

TEST_CASE("(e): every matrix is orthogonalized once, by the ranks of one TP group, and as evenly as in (d)") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Case c = random_case(seed);
    INFO(c.text());
    double once = 0, of_e = 0, most_of_e = 0, most_of_d = 0;
    for (const Parameter& each : c.parameters)
      once += newton_schulz_flops(each.shape.rows, each.shape.cols, c.settings.ns_steps);
    for (const Plan& plan : plans_of(all_to_all(), lay_out(all_to_all(), c), c.settings)) {
      of_e += flops(plan, phases::orthogonalize);
      most_of_e = std::max(most_of_e, flops(plan, phases::orthogonalize));
    }
    for (const Plan& plan : plans_of(owner_by_work(), lay_out(owner_by_work(), c), c.settings))
      most_of_d = std::max(most_of_d, flops(plan, phases::orthogonalize));
    CHECK(of_e == doctest::Approx(once * c.grid.tp()));
    if (std::all_of(c.parameters.begin(), c.parameters.end(), [](const Parameter& p) { return p.group == 0; }))
      CHECK(most_of_e == doctest::Approx(most_of_d));
  }
}

TEST_CASE("(c), (d): over dp nothing travels but the reduce-scatters and all-gathers of ZeRO-1") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
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

TEST_CASE("(f): over tp twice the bytes of (d) in bf16, as many in fp32, and over dp the same") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const Precision precision : {Precision::bf16, Precision::fp32}) {
      Case c = laid_out(tp_duplicated(), random_case(seed));
      c.settings.precision = precision;
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

TEST_CASE("strategy_cost: what the plans of all ranks add up to, also where only some of them are asked") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Strategy& strategy : strategies()) {
      const Case c = strategy_case(seed);
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = lay_out(strategy, c);
      if (!takes(strategy, layout, c.settings)) continue;
      const StrategyCost cost = strategy_cost(strategy, c.parameters, c.grid, c.options.bucket_capacity, c.settings);
      double most_bytes = 0, all_bytes = 0, most_messages = 0, most_flops = 0, all_flops = 0, newton_schulz = 0;
      Index kept = 0, transient = 0;
      for (int r = 0; r < c.grid.size(); ++r) {
        Traffic traffic;
        double computed = 0;
        for (int step = 0; step < strategy.period; ++step) {
          const Plan plan = strategy.optimizer(layout, c.settings, step)->plan(layout, c.grid.place(r));
          traffic += ledger_of(plan).total();
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
        most_flops = std::max(most_flops, computed / steps);
        all_flops += computed / steps;
      }
      double once = 0;
      for (const Parameter& each : c.parameters) {
        const auto fused = c.settings.fused.find(each.name);
        const int pieces = fused == c.settings.fused.end() ? 1 : static_cast<int>(fused->second.size());
        once += pieces * newton_schulz_flops(each.shape.rows / pieces, each.shape.cols, c.settings.ns_steps);
      }
      CHECK(cost.most_bytes_sent == doctest::Approx(most_bytes));
      CHECK(cost.mean_bytes_sent == doctest::Approx(all_bytes / c.grid.size()));
      CHECK(cost.most_messages_sent == doctest::Approx(most_messages));
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
  const Strategy odd = {'z', "odd", "nobody", gather_everything().lay_out, make_odd, 2};
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
