// Every optimizer, over random layouts and all policies of ownership: its bits are its reference's, and it does what
// its plan lists, call by call.
#include "src/optim/optimizer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "src/layout/sharding.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/serial_adamw.hpp"
#include "src/optim/zero1_adamw.hpp"
#include "tests/optim/momentum_sgd.hpp"
#include "tests/optim/rank_threads.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

std::vector<MakeOptimizer> all_optimizers(const Case& c) {
  AdamWSettings torch{0.02f, 0.8f, 0.95f, 1e-6f, 0.0f, Epsilon::outside_corrected_root};
  const MakeOptimizer muon = [c] { return std::make_unique<Muon>(c.settings); };
  MuonSettings gathers_less = c.settings;
  gathers_less.gather = Gather::cut_matrices;
  const MakeOptimizer cut_only = [gathers_less] { return std::make_unique<Muon>(gathers_less); };
  const MakeOptimizer adamw = [] { return std::make_unique<AdamW>(AdamWSettings()); };
  const MakeOptimizer zero1 = [torch] { return std::make_unique<Zero1AdamW>(torch); };
  // The parameters of a random case are in up to three groups.
  const std::vector<ParameterGroup> groups = {{"a", {}, muon}, {"b", {}, zero1}, {"c", {}, adamw}};
  return {muon,
          cut_only,
          adamw,
          zero1,
          [] { return std::make_unique<momentum_sgd::Distributed>(); },
          [c, groups] { return std::make_unique<GroupedOptimizer>(groups, c.parameters); }};
}

// What the rank at `place` has to keep: one or two numbers for each element, of its own or of all.
Index expected_state(const std::string& optimizer, const Layout& layout, const Place& place) {
  if (optimizer == "AdamW") return 2 * element_count(zero_buckets(layout));
  if (optimizer == "ZeRO-1 AdamW") return 2 * layout.shard_elements(place.dp);
  if (optimizer.find('+') == std::string::npos) return layout.shard_elements(place.dp);
  return expected_state("Muon", layout.of_group(0), place) + expected_state("ZeRO-1 AdamW", layout.of_group(1), place) +
         expected_state("AdamW", layout.of_group(2), place);
}

// Where the figures of a layout (sharding.hpp) are not the sums over the plans of its ranks; else empty.
std::string first_difference(const Layout& layout, MuonSettings settings) {
  settings.gather = Gather::cut_matrices;
  const Sharding sharding = sharding_of(layout, settings.ns_steps);
  double all = 0;
  for (int rank = 0; rank < layout.grid.size(); ++rank) {
    const Place place = layout.grid.place(rank);
    const Plan plan = muon_plan(layout, place, settings);
    Index received = 0, owned = 0;
    for (const Operation& operation : plan.operations) {
      const Call* call = std::get_if<Call>(&operation);
      if (call != nullptr && call->kind == CollectiveKind::recv) received += call->elements_out;
      const Work* work = std::get_if<Work>(&operation);
      if (work != nullptr && work->phase == phases::apply) owned += work->shape.size();
    }
    const std::size_t dp = static_cast<std::size_t>(place.dp);
    all += flops(plan, phases::orthogonalize);
    if (sharding.gathered[dp] != received) return "gathered";
    if (sharding.elements[dp] != owned) return "elements";
    if (sharding.flops[dp] != flops(plan, phases::orthogonalize)) return "flops";
  }
  return sharding.redundancy(layout.grid.tp()) == doctest::Approx(all / sharding.flops_once) ? "" : "redundancy";
}

// A case whose matrices lie on several ranks, with every kind of TP.
Case clear_case() {
  Case c;
  c.seed = 3;
  c.parameters = {{"a", {8, 8}, SplitDim::rows}, {"b", {12, 6}, SplitDim::columns}, {"c", {5, 7}, SplitDim::none}};
  c.grid = Grid().dp(2).tp(2);
  c.steps = 1;
  return c;
}

}  // namespace

TEST_CASE("kept_elements: the sum of all that an optimizer keeps, and nothing where it keeps nothing") {
  struct Keeper : Muon {
    explicit Keeper(std::vector<Kept> kept) : Muon(MuonSettings()), kept_(std::move(kept)) {}
    std::vector<Kept> keeps() const override { return kept_; }
    std::vector<Kept> kept_;
  };
  CHECK(Keeper({}).kept_elements() == 0);
  CHECK(Keeper({{"a", 3}}).kept_elements() == 3);
  CHECK(Keeper({{"a", 3}, {"b", 40}, {"c", 500}}).kept_elements() == 543);
}

TEST_CASE("optimizers: any grid, layout, precision and ownership: the reference's bits, and the plan call by call") {
  int calls = 0, own_nothing = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      if (seed % 3 == 1) c.options.owners = round_robin_owners(c.parameters, c.grid.dp());
      if (seed % 3 == 2) c.options.owners = balanced_owners(c.parameters, c.grid.dp(), Load::elements);
      c.settings.threads = 1;
      INFO(c.text());
      const Layout layout = c.layout();
      REQUIRE(first_difference(layout, c.settings) == "");
      for (const MakeOptimizer& make : all_optimizers(c)) {
        const auto optimizer = make();
        CAPTURE(optimizer->name());
        const auto ranks = record_steps(c, make);
        const auto reference = reference_steps(c, *optimizer);
        for (int r = 0; r < c.grid.size(); ++r) {
          const Place place = c.grid.place(r);
          const Plan plan = optimizer->plan(layout, place);
          for (int step = 0; step < c.steps; ++step) {
            const RecordedStep& recorded = ranks[r][step];
            REQUIRE(first_difference(c, place, recorded.slices, reference[step]) == "");
            REQUIRE(first_difference(plan, recorded) == "");
            calls += static_cast<int>(recorded.seen.size());
          }
          Index kept = 0;
          for (const Kept& each : ranks[r][0].kept) kept += each.elements;
          own_nothing += layout.shard_elements(place.dp) == 0;
          REQUIRE(kept == expected_state(optimizer->name(), layout, place));
          // What is handed first: weights, gradients and what is kept.
          Index handed = 0;
          for (const Operation& operation : plan.operations) {
            if (!std::holds_alternative<Memory>(operation)) break;
            handed += std::get<Memory>(operation).elements;
          }
          REQUIRE(handed == 2 * element_count(zero_buckets(layout)) + kept);
        }
      }
    }
  MESSAGE(calls, " phases and calls were compared; ", own_nothing, " times a rank owned nothing at all");
  REQUIRE(own_nothing > 0);
}

TEST_CASE("plans: whichever operation is left out, doubled, changed or swapped, the comparison finds it") {
  const Case c = clear_case();
  for (const MakeOptimizer& make : all_optimizers(c)) {
    const auto recorded = record_steps(c, make);
    const Plan plan = make()->plan(c.layout(), c.grid.place(3));
    const RecordedStep& step = recorded[3][0];
    REQUIRE(first_difference(plan, step) == "");
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      CAPTURE(i);
      Plan without = plan, doubled = plan, changed = plan, swapped = plan;
      without.operations.erase(without.operations.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(first_difference(without, step) != "");
      doubled.operations.insert(doubled.operations.begin() + static_cast<std::ptrdiff_t>(i), plan.operations[i]);
      CHECK(first_difference(doubled, step) != "");
      Operation& operation = changed.operations[i];
      if (Memory* memory = std::get_if<Memory>(&operation)) memory->elements += 1;
      if (Call* call = std::get_if<Call>(&operation)) call->elements_in += 1;
      if (Work* work = std::get_if<Work>(&operation)) work->parameter += 1;
      CHECK(first_difference(changed, step) != "");
      if (i == 0 || plan.operations[i].index() == plan.operations[i - 1].index()) continue;
      std::swap(swapped.operations[i], swapped.operations[i - 1]);
      // Memory may come before or after a call of its phase; only at a phase's begin, or at the peak, does it show.
      if (std::holds_alternative<Work>(plan.operations[i]) || std::holds_alternative<Work>(plan.operations[i - 1]))
        CHECK(first_difference(swapped, step) != "");
    }
    for (const char* group : {"tp", "dp"}) {
      Plan elsewhere = plan;
      bool any = false;
      for (Operation& operation : elsewhere.operations)
        if (Call* call = std::get_if<Call>(&operation); call != nullptr && call->group == group) {
          call->group = std::string(group) == "tp" ? "dp" : "tp";
          any = true;
        }
      CHECK((first_difference(elsewhere, step) != "") == any);
    }
  }
}

TEST_CASE("plans: a step that does something other than the plan of its rank is caught, whatever it is") {
  const Case c = clear_case();
  const auto steps = record_steps(c, [&c] { return std::make_unique<Muon>(c.settings); });
  Case other = c;
  const auto differs = [&](int rank) {
    return first_difference(muon_plan(other.layout(), c.grid.place(rank), other.settings), steps[rank][0]) != "";
  };
  CHECK_FALSE(differs(0));
  other.settings.precision = Precision::bf16;
  CHECK(differs(0));
  other = c;
  other.options.bucket_capacity = 30;
  CHECK(differs(0));
  other = c;
  other.options.ownership = Ownership::matrices;
  CHECK(differs(0));
  other = c;
  other.parameters[0].tp_split_dim = SplitDim::none;
  CHECK(differs(0));
  other = c;
  // Rank 0 and rank 2 own other matrices.
  CHECK(first_difference(muon_plan(c.layout(), c.grid.place(2), c.settings), steps[0][0]) != "");
}

TEST_CASE("serial AdamW: one matrix, one step, as the formula has it") {
  const Case c = [] {
    Case one;
    one.parameters = {{"w", {2, 3}, SplitDim::none}};
    return one;
  }();
  SerialAdamW serial(c.weights(), AdamWSettings());
  std::vector<std::vector<Matrix>> leaves;
  for (int leaf = 0; leaf < 4; ++leaf) leaves.push_back(c.gradients(0, leaf));
  serial.step(leaves);
  AdamWState state = initial_adamw_state(c.weights()[0].matrix.flat());
  Flat sum(6);
  for (std::size_t i = 0; i < 6; ++i)  // the tree over four leaves
    sum[i] = (leaves[0][0].flat()[i] + leaves[1][0].flat()[i]) + (leaves[2][0].flat()[i] + leaves[3][0].flat()[i]);
  adamw(state, sum, 1, AdamWSettings());
  CHECK(same_bits(serial.parameters()[0].matrix, Matrix(2, 3, state.weights)));
}

TEST_CASE("AdamW step: gradients of another layout, or of another place, are refused in a sentence") {
  const Layout layout = plan_layout({{"w", {2, 2}}}, Grid());
  run_ranks(Grid(), [&](TestRank& rank) {
    AdamWBuckets state = initial_adamw_buckets(layout, zero_buckets(layout));
    const StepContext context{layout, rank.place, rank.dp, rank.tp};
    for (const Buckets& wrong : {Buckets{}, Buckets{{}}, Buckets{{Flat(64), Flat(64)}}, Buckets{{Flat(3)}}}) {
      std::string sentence;
      try {
        adamw_step(context, AdamWSettings(), wrong, state);
      } catch (const std::invalid_argument& error) {
        sentence = error.what();
      }
      if (sentence.find("adamw_step was given gradients") != 0) throw std::logic_error("was taken: " + sentence);
    }
    if (state.steps != 0) throw std::logic_error("a step that was refused was counted");
  });
}
