// Every optimizer, over random layouts and all policies of ownership: its bits are its reference's, and it does what
// its plan lists, call by call.
#include "src/optim/optimizer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>

#include "src/layout/sharding.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "tests/cases.hpp"
#include "tests/optim/momentum_sgd.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"
#include "tests/sentence_of.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// Those that can be handed gradients that are summed already, or sum them.
std::vector<MakeOptimizer> optimizers_of_sums(const Case& c, bool summed) {
  MuonSettings muon_of = c.settings, cut_only = c.settings;
  muon_of.summed_gradients = cut_only.summed_gradients = summed;
  cut_only.gather = Gather::cut_matrices;
  AdamWSettings adamw_of{0.02f, 0.8f, 0.95f, 1e-6f, 0.05f, Epsilon::outside_corrected_root, summed};
  const MakeOptimizer muon = [muon_of] { return std::make_unique<Muon>(muon_of); };
  const MakeOptimizer zero1 = [adamw_of] { return std::make_unique<Zero1AdamW>(adamw_of); };
  const std::vector<ParameterGroup> groups = {{"a", {}, zero1}, {"b", {}, muon}, {"c", {}, zero1}};
  return {muon, [cut_only] { return std::make_unique<Muon>(cut_only); }, zero1,
          [c, groups] { return std::make_unique<GroupedOptimizer>(groups, c.parameters); }};
}

// Those that sum them.
std::vector<MakeOptimizer> optimizers_that_sum(const Case& c) {
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

std::vector<MakeOptimizer> all_optimizers(const Case& c) {
  std::vector<MakeOptimizer> all = optimizers_that_sum(c);
  for (const MakeOptimizer& make : optimizers_of_sums(c, true)) all.push_back(make);
  return all;
}

// A number that goes round over the cases.
std::size_t turn_of(const Case& c) { return c.seed + static_cast<std::size_t>(c.options.ownership); }

// Those that sum gradients, and one of those that are handed sums: each case has another of them. Most of what a case
// takes is that threads wait for each other.
std::vector<MakeOptimizer> optimizers_in_turn(const Case& c) {
  std::vector<MakeOptimizer> some = optimizers_that_sum(c);
  const std::vector<MakeOptimizer> of_sums = optimizers_of_sums(c, true);
  some.push_back(of_sums[turn_of(c) % of_sums.size()]);
  return some;
}

// What the rank at `place` has to keep: one or two numbers for each element, of its own or of all.
Index expected_state(const std::string& optimizer, const Layout& layout, const Place& place) {
  if (optimizer == "AdamW") return 2 * element_count(zero_buckets(layout));
  if (optimizer == "ZeRO-1 AdamW") return 2 * layout.shard_elements(place.dp);
  if (optimizer.find('+') == std::string::npos) return layout.shard_elements(place.dp);
  if (optimizer == "ZeRO-1 AdamW + Muon")
    return expected_state("ZeRO-1 AdamW", layout.of_group(0), place) +
           expected_state("Muon", layout.of_group(1), place) +
           expected_state("ZeRO-1 AdamW", layout.of_group(2), place);
  return expected_state("Muon", layout.of_group(0), place) + expected_state("ZeRO-1 AdamW", layout.of_group(1), place) +
         expected_state("AdamW", layout.of_group(2), place);
}

// Where the figures of a layout (sharding.hpp) are not the sums over the plans of its ranks; else empty.
std::string first_difference(const Layout& layout, MuonSettings settings) {
  settings.gather = Gather::cut_matrices;
  const Sharding sharding = sharding_of(layout, settings.newton_schulz.steps);
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
    explicit Keeper(std::vector<std::pair<const char*, Buckets>> kept) : Muon(MuonSettings()), kept_(std::move(kept)) {}
    StateTensors state_tensors() override {
      StateTensors all;
      for (auto& [name, buckets] : kept_) all.items.push_back({{name}, &buckets});
      return all;
    }
    std::vector<std::pair<const char*, Buckets>> kept_;
  };
  const auto of = [](std::size_t elements) { return Buckets{{Flat(elements / 2), Flat(elements - elements / 2)}}; };
  CHECK(Keeper({}).kept_elements() == 0);
  CHECK(Keeper({{"a", of(3)}}).kept_elements() == 3);
  const Keeper three({{"a", of(3)}, {"b", of(40)}, {"a", of(500)}});
  CHECK(three.kept_elements() == 543);
}

TEST_CASE("optimizers: any grid, layout, precision and ownership: the reference's bits, and the plan call by call") {
  int calls = 0, own_nothing = 0;
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{80}); ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      if (seed % 3 == 1) c.options.owners = round_robin_owners(c.parameters, c.grid.dp());
      if (seed % 3 == 2) c.options.owners = balanced_owners(c.parameters, c.grid.dp(), Load::elements);
      c.settings.newton_schulz.threads = 1 + static_cast<int>(seed % 2);
      INFO(c.text());
      const Layout layout = c.layout();
      REQUIRE(first_difference(layout, c.settings) == "");
      for (const MakeOptimizer& make : optimizers_in_turn(c)) {
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
          const Index kept = ranks[r][0].kept;
          own_nothing += layout.shard_elements(place.dp) == 0;
          REQUIRE(kept == expected_state(optimizer->name(), layout, place));
          // What is handed first: weights, gradients and what is kept.
          Index handed = 0;
          for (const Operation& operation : plan.operations) {
            if (!std::holds_alternative<Memory>(operation)) break;
            handed += std::get<Memory>(operation).elements;
          }
          const Index whole = element_count(zero_buckets(layout));
          const Index gradients = optimizer->takes_summed_gradients() ? layout.shard_elements(place.dp) : whole;
          REQUIRE(handed == whole + gradients + kept);
        }
      }
    }
  MESSAGE(calls, " phases and calls were compared; ", own_nothing, " times a rank owned nothing at all");
  REQUIRE(own_nothing > 0);
}

TEST_CASE("optimizers: saved after any step, resumed by others on other threads: bit for bit as if never interrupted") {
  int moments = 0;
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{40}); ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      c.settings.newton_schulz.threads = 1;
      INFO(c.text());
      for (const MakeOptimizer& make : optimizers_in_turn(c)) {
        const auto whole = final_states(c, make);
        const int pause = 1 + static_cast<int>(seed) % (c.steps - 1);
        const auto resumed = final_states(c, make, pause);
        for (std::size_t r = 0; r < whole.size(); ++r) {
          REQUIRE(first_difference(whole[r], resumed[r]) == "");
          REQUIRE(whole[r].steps == c.steps);
          moments += static_cast<int>(whole[r].kept.size());
        }
      }
    }
  MESSAGE(moments, " buckets of momentum and moments were compared");
}

TEST_CASE(
    "resume: what another optimizer has saved, or has other sizes than the layout says, is refused in a sentence") {
  const Layout layout = plan_layout({{"w", {6, 4}}, {"v", {4, 2}}}, Grid().dp(2), {24, 1});
  const Place place = layout.grid.place(1);
  Muon muon{MuonSettings()};
  muon.start(layout, place, zero_buckets(layout));
  const SavedState right = muon.save();
  const auto refused = [&](SavedState saved, const Layout& resumed_with) {
    return sentence_of([&] { Muon(MuonSettings()).resume(resumed_with, place, std::move(saved)); });
  };
  const auto after = [&](const std::function<void(SavedState&)>& change) {
    SavedState changed = right;
    change(changed);
    return refused(std::move(changed), layout);
  };
  const std::string remedy = "; resume with the layout, and on the rank, that it was saved with.";
  CHECK(refused(right, layout) == "");
  CHECK(after([](SavedState& s) { s.steps = -1; }).find("after -1 steps") != std::string::npos);
  // Each change with what the sentence begins with.
  const std::vector<std::pair<std::function<void(SavedState&)>, std::string>> changes = {
      {[](SavedState& s) { s.weights.clear(); }, "weights for 0 buffers, but the layout has 1"},
      {[](SavedState& s) { s.weights[0].pop_back(); }, "weights for 1 buckets of buffer 0, but the layout has 2"},
      {[](SavedState& s) { s.weights[0][1].pop_back(); }, "weights of 7 elements for bucket 1 of buffer 0"},
      {[](SavedState& s) { s.kept.clear(); }, "0 things that are kept, but \"Muon\" keeps 1"},
      {[](SavedState& s) { s.kept[0].name = "first moments"; }, "\"first moments\" where \"momentum\" are kept"},
      {[](SavedState& s) { s.kept[0].buckets.emplace_back(); }, "momentum for 2 buffers"},
      {[](SavedState& s) { s.kept[0].buckets[0].emplace_back(); }, "momentum for 3 buckets"},
      {[](SavedState& s) { s.kept[0].buckets[0][0].emplace_back(); }, "momentum of 13 elements for bucket 0"}};
  for (const auto& [change, what] : changes) {
    const std::string sentence = after(change);
    CHECK_MESSAGE(sentence.rfind("resume was given " + what, 0) == 0, sentence);
    CHECK(sentence.find(remedy) == sentence.size() - remedy.size());
  }
  // Weights are whole on every rank, so another number of ranks shows in what each of them keeps.
  CHECK(refused(right, plan_layout({{"w", {6, 4}}, {"v", {4, 2}}}, Grid().dp(4), {24, 1}))
            .rfind("resume was given momentum of 12 elements for bucket 0, but the rank keeps 6", 0) == 0);

  // Each optimizer refuses what any other has saved.
  const Case c = clear_case();
  const auto all = all_optimizers(c);
  for (const MakeOptimizer& saves : all)
    for (const MakeOptimizer& resumes : all) {
      const auto saver = saves(), resumer = resumes();
      saver->start(c.layout(), c.grid.place(0), zero_buckets(c.layout()));
      if (saver->name() == resumer->name())
        CHECK_NOTHROW(resumer->resume(c.layout(), c.grid.place(0), saver->save()));
      else
        CHECK_THROWS_AS(resumer->resume(c.layout(), c.grid.place(0), saver->save()), std::invalid_argument);
    }
}

TEST_CASE("summed gradients: any layout: reduced first and then stepped, state and weights have the bits of one step") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{60}); ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      c.settings.newton_schulz.threads = 1;
      INFO(c.text());
      const auto own = optimizers_of_sums(c, false), summed = optimizers_of_sums(c, true);
      for (std::size_t i = turn_of(c) % 2; i < own.size(); i += 2) {  // half of them, in turn
        const auto steps_own = final_states(c, own[i]), steps_summed = final_states(c, summed[i]);
        for (std::size_t r = 0; r < steps_own.size(); ++r)
          REQUIRE(first_difference(steps_own[r], steps_summed[r]) == "");
        const Layout layout = c.layout();
        for (int r = 0; r < c.grid.size(); ++r) {
          const Plan plan = summed[i]()->plan(layout, c.grid.place(r));
          REQUIRE(count(plan, phases::reduce_gradients) == 0);
          for (const PlannedCall& each : calls_of(plan)) REQUIRE(each.call.kind != CollectiveKind::reduce_scatter);
          REQUIRE(count(plan, phases::momentum) == count(own[i]()->plan(layout, c.grid.place(r)), phases::momentum));
        }
      }
    }
}

TEST_CASE("summed gradients: what sums them itself refuses, and so does a step that is handed whole buckets") {
  Case c = clear_case();
  c.settings.summed_gradients = true;
  AdamWSettings adamw_settings;
  adamw_settings.summed_gradients = true;
  const Layout layout = c.layout();
  const std::string own =
      " was told that gradients are summed before it begins, but it sums them itself; leave summed_gradients off, or "
      "take full_step and Zero1AdamW.";
  const Place place = c.grid.place(1);
  CHECK(sentence_of([&] { AdamW(adamw_settings).plan(layout, place); }) == "the plan of AdamW" + own);
  std::vector<std::string> sentences(3);
  run_ranks(Grid(), [&](TestRank& rank) {
    const Layout alone = plan_layout(c.parameters, Grid());
    const auto refusal = [&](Optimizer&& optimizer, const Layout& of, const Buckets& gradients) {
      optimizer.start(of, rank.place, zero_buckets(of));
      return sentence_of([&] { optimizer.step({of, rank.place, rank.dp, rank.tp}, gradients); });
    };
    sentences[0] = refusal(AdamW(adamw_settings), alone, zero_buckets(alone));
    sentences[1] = refusal(Muon(c.settings), alone, {{Flat(3)}});
    sentences[2] = refusal(Zero1AdamW(adamw_settings), alone, {{Flat(3)}});
  });
  CHECK(sentences[0] == "AdamW" + own);
  CHECK(sentences[1].rfind("full_step was given gradients of 3 elements", 0) == 0);
  CHECK(sentences[2].rfind("Zero1AdamW was given gradients of 3 elements", 0) == 0);

  // On two DP ranks whole buckets are too large, for each optimizer and for several.
  int refused = 0;
  run_ranks(c.grid, [&](TestRank& rank) {
    for (const MakeOptimizer& make : optimizers_of_sums(c, true)) {
      const auto optimizer = make();
      optimizer->start(layout, rank.place, zero_buckets(layout));
      const std::string sentence = sentence_of([&] {
        optimizer->step({layout, rank.place, rank.dp, rank.tp}, zero_buckets(layout));
      });
      if (sentence.find(" was given gradients of ") == std::string::npos)
        throw std::logic_error("was taken: " + sentence);
      if (rank.place.rank == 0) ++refused;
    }
  });
  CHECK(refused == 4);
}

TEST_CASE("scale_learning_rates: any schedule: the reference's bits, also where it was paused and resumed") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{40}); ++seed) {
    Case c = random_case(seed);
    c.settings.newton_schulz.threads = 1;
    Choices choose(seed + 500);
    for (int step = 0; step < c.steps; ++step) c.rates.push_back(choose.one_of<float>({0.0f, 0.1f, 1.0f, 0.77f, 1.3f}));
    INFO(c.text());
    for (const MakeOptimizer& make : optimizers_in_turn(c)) {
      const auto optimizer = make();
      if (optimizer->name() == "momentum SGD") continue;
      CAPTURE(optimizer->name());
      const auto reference = reference_steps(c, *optimizer);
      const auto ranks = record_steps(c, make);
      for (int r = 0; r < c.grid.size(); ++r)
        for (int step = 0; step < c.steps; ++step)
          REQUIRE(first_difference(c, c.grid.place(r), ranks[r][step].slices, reference[step]) == "");
      const auto straight = final_states(c, make), resumed = final_states(c, make, 1);
      for (std::size_t r = 0; r < straight.size(); ++r) REQUIRE(first_difference(straight[r], resumed[r]) == "");
    }
  }
}

TEST_CASE("scale_learning_rates: each factor is of the rate in the settings, and the weight decay follows it") {
  const std::vector<NamedMatrix> one = {{"w", Matrix(1, 2, Flat{8, -4})}};
  const std::vector<std::vector<Matrix>> nothing = {{Matrix(1, 2)}};  // without a gradient, decay alone is left
  MuonSettings muon;
  muon.lr = 0.5f;
  muon.weight_decay = 1;
  AdamWSettings adamw_settings;
  adamw_settings.lr = 0.5f;
  adamw_settings.weight_decay = 1;
  const std::vector<Parameter> parameters = {{"w", {1, 2}}};
  const std::vector<ParameterGroup> groups = {{"a", {}, [muon] { return std::make_unique<Muon>(muon); }}};
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  optimizers.push_back(std::make_unique<Muon>(muon));
  optimizers.push_back(std::make_unique<AdamW>(adamw_settings));
  optimizers.push_back(std::make_unique<GroupedOptimizer>(groups, parameters));
  for (const auto& optimizer : optimizers) {
    CAPTURE(optimizer->name());
    optimizer->scale_learning_rates(0.25f);  // a reference begins with the rates of the settings all the same
    const auto serial = optimizer->reference(one);
    std::vector<float> left;
    for (const float factor : {0.5f, 0.5f, 0.0f, 1.0f}) {
      serial->scale_learning_rates(factor);
      serial->step(nothing);
      left.push_back(serial->parameters()[0].matrix(0, 0));
    }
    serial->step(nothing);  // the last factor stays
    left.push_back(serial->parameters()[0].matrix(0, 0));
    CHECK(left == std::vector<float>{6, 4.5f, 4.5f, 2.25f, 1.125f});
    for (const float wrong : {-0.5f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const std::string sentence =
          fmt::format("A learning rate was to be scaled by {:g}; a factor is finite and at least 0.", wrong);
      CHECK_THROWS_WITH_AS(serial->scale_learning_rates(wrong), sentence.c_str(), std::invalid_argument);
      CHECK_THROWS_WITH_AS(optimizer->scale_learning_rates(wrong), sentence.c_str(), std::invalid_argument);
    }
  }
  momentum_sgd::Distributed fixed;
  CHECK_THROWS_AS(fixed.scale_learning_rates(0.5f), std::logic_error);
  CHECK_THROWS_WITH_AS(fixed.reference(one)->scale_learning_rates(0.5f),
                       "A serial optimizer was asked to scale its learning rate, but it has none that changes; take "
                       "one that implements scale_learning_rates.",
                       std::logic_error);
}

TEST_CASE("save: says how often it stepped since it was started, whatever it did before") {
  const Case c = clear_case();
  for (const MakeOptimizer& make : all_optimizers(c)) {
    const auto stepped = final_states(c, make);
    const auto optimizer = make();
    CHECK(optimizer->save().steps == 0);
    optimizer->resume(c.layout(), c.grid.place(0), stepped[0]);
    CHECK(optimizer->save().steps == c.steps);
    CHECK(first_difference(optimizer->save(), stepped[0]) == "");
    optimizer->start(c.layout(), c.grid.place(0), zero_buckets(c.layout()));
    CHECK(optimizer->save().steps == 0);
  }
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
