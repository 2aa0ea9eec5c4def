// A run that was saved on one grid goes on in any other, as if it had never stopped.
#include "lessons/lesson_20_pretrain/resharding.hpp"

#include <doctest/doctest.h>

#include <set>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/state_form.hpp"
#include "lessons/lesson_20_pretrain/tests/resharding_case.hpp"
#include "lessons/lesson_20_pretrain/tests/small_checkpoint.hpp"
#include "src/errors.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/train/models.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_fibers.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

// One of everything, under Muon and AdamW.
TinyRun clear_run() {
  TinyRun run = random_run(1);
  const std::vector<ParameterGroup> groups = usual_groups(MuonSettings(), AdamWSettings());
  run.parameters = route(tiny_gpt_parameters(), groups);
  run.make = [groups, routed = run.parameters] { return std::make_unique<GroupedOptimizer>(groups, routed); };
  run.one_leaf = false;
  run.tied = false;
  return run;
}

// Why no checkpoint was saved after two steps, if this is what becomes of the ranks' states. All of them say the same.
std::string refusal(const TinyRun& run, const Stages& stages, const ChangeState& change) {
  const Trained trained = train(run, stages, nullptr, 2, change);
  const std::string first = trained.refused.at(0), begin = "no checkpoint was saved: ";
  for (const std::string& each : trained.refused)
    if (each != first) return "the ranks disagree: " + first + " / " + each;
  return !trained.saved && first.rfind(begin, 0) == 0 ? first.substr(begin.size()) : "something else: " + first;
}

void fill(Buckets& buckets, float value) {
  for (std::vector<Flat>& buffer : buckets)
    for (Flat& bucket : buffer) std::fill(bucket.begin(), bucket.end(), value);
}

}  // namespace

TEST_CASE("checkpoints: any two grids, layouts and optimizers: the bits of the run that was never interrupted") {
  const TemporaryFolder folder;
  int uneven = 0, pipelines = 0, tied = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const TinyRun run = random_run(seed);
    const Stages from = random_stages(run, 1000 + seed), to = random_stages(run, 2000 + seed);
    CAPTURE(seed);
    CAPTURE(run.make()->name());
    INFO(from.text(), " → ", to.text());
    constexpr int kBefore = 2, kSteps = 4;
    const Trained before = train(run, from, nullptr, kBefore);
    for (const std::string& each : before.refused) REQUIRE(each == "");
    CHECK(before.against_plan == "");
    REQUIRE(before.saved);
    const std::vector<NamedMatrix> whole = run.reference(kBefore);
    for (std::size_t p = 0; p < whole.size(); ++p)
      CHECK(same_bits(before.saved->parameters[p].weights, whole[p].matrix));

    const std::string path = checkpoint_path(folder.path(), before.saved->steps);
    write_checkpoint(path, *before.saved);
    const Checkpoint read = read_checkpoint(path);
    CHECK(read.path == path);
    REQUIRE(first_difference(read, *before.saved) == "");

    const Trained after = train(run, to, &read, kSteps);
    CHECK(after.against_plan == "");
    CHECK(first_difference(to, after, run.reference(kSteps)) == "");
    // State and all, and so is what one rank alone comes to.
    const Stages single = stages_of(run, Grid());
    const Trained uninterrupted = train(run, single, nullptr, kSteps);
    REQUIRE((after.saved && uninterrupted.saved));
    CHECK(first_difference(*after.saved, *uninterrupted.saved) == "");
    uneven += from.grid.dp() == 3 || to.grid.dp() == 3;
    pipelines += from.grid.pp() != to.grid.pp();
    tied += run.tied && from.grid.pp() > 1;
  }
  CHECK(uneven > 3);
  CHECK(pipelines > 10);
  CHECK(tied > 3);
}

TEST_CASE("checkpoints: stages without a parameter have nothing to save, and go on") {
  TinyRun run = clear_run();
  run.parameters.resize(2);
  const Stages few = stages_of(run, Grid()), many = stages_of(run, Grid().dp(2).pp(3));
  REQUIRE(many.layouts[0].buffers.empty());
  const Trained before = train(run, many, nullptr, 2);
  REQUIRE(before.saved);
  CHECK(before.against_plan == "");
  CHECK(first_difference(few, train(run, few, &*before.saved, 3), run.reference(3)) == "");
  CHECK(first_difference(many, train(run, many, &*before.saved, 3), run.reference(3)) == "");
}

TEST_CASE("planted: second moments that are saved as zeros, and moments that are dropped, change the weights") {
  const TinyRun run = clear_run();
  const Stages from = stages_of(run, Grid().dp(2).tp(2)), to = stages_of(run, Grid().dp(4));
  const auto named = [](const char* name, SavedState& state) {
    for (SavedBuckets& kept : state.kept)
      if (kept.name == name) fill(kept.buckets, 0);
  };
  const Trained right = train(run, from, nullptr, 3);
  REQUIRE(right.saved);
  CHECK(first_difference(to, train(run, to, &*right.saved, 5), run.reference(5)) == "");

  const Trained zeros =
      train(run, from, nullptr, 3, [&](SavedState& state, const Place&) { named("second moments", state); });
  REQUIRE(zeros.saved);
  CHECK(first_difference(*right.saved, *zeros.saved) == "second moments of embed");
  CHECK(first_difference(to, train(run, to, &*zeros.saved, 5), run.reference(5)) != "");

  const auto dropped = [&](SavedState& state, const Place&) {
    for (SavedBuckets& kept : state.kept) fill(kept.buckets, 0);
  };
  CHECK(first_difference(to, train(run, to, &*right.saved, 5, nullptr, dropped), run.reference(5)) != "");
}

TEST_CASE("planted: a step counter in bfloat16 stops at 256, and takes the next step twice") {
  TinyRun run = clear_run();
  run.parameters = {{"norm", {1, 6}, SplitDim::none, 2, 1}};
  const Stages stages = stages_of(run, Grid().dp(2));
  const Trained right = train(run, stages, nullptr, 257);
  REQUIRE(right.saved);
  CHECK(right.saved->steps == 257);
  CHECK(first_difference(stages, train(run, stages, &*right.saved, 259), run.reference(259)) == "");

  const auto rounded = [](SavedState& state, const Place&) {
    state.steps = static_cast<int>(static_cast<float>(bfloat16(static_cast<float>(state.steps))));
  };
  const Trained planted = train(run, stages, nullptr, 257, rounded);
  REQUIRE(planted.saved);
  CHECK(planted.saved->steps == 256);
  CHECK(first_difference(stages, train(run, stages, &*planted.saved, 259), run.reference(259)) == "norm on rank 0");
}

TEST_CASE("planted: what only some ranks keep is refused, by all ranks with the same sentence") {
  const TinyRun run = clear_run();
  const Stages stages = stages_of(run, Grid().dp(2).tp(2));
  CHECK(refusal(run, stages,
                [](SavedState& state, const Place& place) {
                  if (place.rank == 2) state.kept.pop_back();
                }) ==
        "rank 2 keeps no \"second moments\" of \"norm\" as rank 0 does; what is kept has to be the same on all ranks "
        "that share parameters");
  CHECK(refusal(run, stages,
                [](SavedState& state, const Place& place) {
                  if (place.rank != 3) return;
                  state.kept.push_back(state.kept[0]);
                  state.kept.back().name = "variance";
                }) ==
        "rank 0 keeps no \"variance\" of \"q\" as rank 3 does; what is kept has to be the same on all ranks that share "
        "parameters");
  CHECK(refusal(run, stages, [](SavedState& state, const Place& place) {
          if (place.rank == 1) --state.steps;
        }) == "after 2 steps of rank 0, rank 1 has taken 1; save when all ranks have ended the same one");
  CHECK(refusal(run, stages, [](SavedState& state, const Place&) { state.kept.push_back(state.kept[0]); }) ==
        "Muon + ZeRO-1 AdamW keeps two things named \"momentum\" of \"q\"; they need different names");
  CHECK(refusal(run, stages, [](SavedState& state, const Place& place) {
          if (place.rank == 3) state.optimizer = "Lion";
        }) == "rank 3 has the optimizer \"Lion\" and rank 0 \"Muon + ZeRO-1 AdamW\"; all ranks have to have the same");
}

TEST_CASE("checkpoints: a tied parameter whose stages differ is refused, in its weights and in what is kept of it") {
  TinyRun run = clear_run();
  run.tied = true;
  const Stages stages = stages_of(run, Grid().dp(2).tp(1).pp(2));
  CHECK(train(run, stages, nullptr, 2).saved);
  const auto said_by_rank_0 = [&](const ChangeState& change) {  // the one that has both
    const Trained trained = train(run, stages, nullptr, 2, change);
    CHECK_FALSE(trained.saved);
    return trained.refused[0];
  };
  const std::string begin = "no checkpoint was saved: stages 0 and 1 share \"embed\", but its ",
                    end = " differ; a checkpoint can't hold both, and what they share has to be stepped alike";
  CHECK(said_by_rank_0([](SavedState& state, const Place& place) {
          if (place.pp == 1) fill(state.weights, 0.5f);
        }) == begin + "weights" + end);
  CHECK(said_by_rank_0([](SavedState& state, const Place& place) {
          for (SavedBuckets& kept : state.kept)
            if (place.rank == 3 && kept.name == "first moments") fill(kept.buckets, 0.5f);
        }) == begin + "first moments" + end);

  // Muon has it on one stage and AdamW on the other.
  Stages mixed = stages;
  std::vector<Parameter> of_last;
  for (const Buffer& buffer : mixed.layouts[1].buffers)
    for (const DistMeta& meta : buffer.parameters)
      for (Parameter each : run.parameters)
        if (each.name == meta.name) {
          if (each.name == "embed") each.group = kHiddenMatrices;
          of_last.push_back(each);
        }
  mixed.layouts[1] = plan_layout(of_last, mixed.grid);
  CHECK(refusal(run, mixed, [](SavedState&, const Place&) {}) ==
        "stages 0 and 1 share \"embed\", but one keeps first moments, second moments of it and the other momentum; one "
        "kind of optimizer has to step it");
}

TEST_CASE("state_of: another model, another optimizer, and state that is missing or too much are refused by name") {
  const TinyRun run = clear_run();
  const Stages stages = stages_of(run, Grid());
  const Trained trained = train(run, stages, nullptr, 1);
  REQUIRE(trained.saved);
  Checkpoint right = *trained.saved;
  right.path = "x.safetensors";
  const auto refusal = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint changed = right;
    change(changed);
    return usage_error(
        [&] { state_of(changed, run.parameters, stages.layouts[0], stages.grid.place(0), *run.make()); });
  };
  const std::string begin = "can't use \"x.safetensors\" as a checkpoint: ";
  const std::string model = "; resume with the model that it was saved of";
  CHECK(refusal([](Checkpoint& c) { c.parameters.pop_back(); }) ==
        begin + "it has no \"lm_head\", which the model has" + model);
  CHECK(refusal([](Checkpoint& c) { c.parameters[0].name = "wte"; }) ==
        begin + "it has no \"embed\", which the model has" + model);
  CHECK(refusal([](Checkpoint& c) {
          c.parameters.push_back(c.parameters[0]);
          c.parameters.back().name = "wpe";
        }) == begin + "it has \"wpe\", which the model does not have" + model);
  CHECK(refusal([](Checkpoint& c) { c.parameters[0].weights = Matrix(12, 9); }) ==
        begin + "its \"embed\" is a matrix 12 × 9, that of the model a matrix 12 × 8" + model);
  CHECK(refusal([](Checkpoint& c) { c.parameters[0].dims = 1; }) ==
        begin + "its \"embed\" is a vector of 96, that of the model a matrix 12 × 8" + model);
  CHECK(refusal([](Checkpoint& c) { c.optimizer = "Muon"; }) ==
        begin +
            "it is of the optimizer \"Muon\", not of \"Muon + ZeRO-1 AdamW\"; resume with the one that it was saved "
            "with");
  const std::string each = "; resume with the optimizer of each parameter that it was saved with";
  CHECK(refusal([](Checkpoint& c) { c.parameters[0].state.erase("second moments"); }) ==
        begin + "it has no \"second moments\" of \"embed\", which Muon + ZeRO-1 AdamW keeps" + each);
  CHECK(refusal([](Checkpoint& c) { c.parameters[0].state["momentum"] = Matrix(12, 8); }) ==
        begin + "it has \"momentum\" of \"embed\", of which Muon + ZeRO-1 AdamW keeps none" + each);
  const Layout strange = plan_layout({{"who", {4, 4}}}, Grid());
  CHECK_THROWS_AS(state_of(right, run.parameters, strange, stages.grid.place(0), *run.make()), std::invalid_argument);
}

TEST_CASE(
    "gather_checkpoint: layouts that are not the model's, and a state of other sizes, are refused before a call") {
  const TinyRun run = clear_run();
  const Stages stages = stages_of(run, Grid().dp(2));
  const auto shorter =
      train(run, stages, nullptr, 1, [](SavedState& state, const Place&) { state.kept[1].buckets[0][0].pop_back(); });
  for (std::size_t rank = 0; rank < shorter.refused.size(); ++rank)
    CHECK(
        shorter.refused[rank].find("gather_checkpoint was given first moments that do not fit bucket 0 of buffer 1, of "
                                   "which rank " +
                                   std::to_string(rank) + " has ") == 0);
  const auto fewer =
      train(run, stages, nullptr, 1, [](SavedState& state, const Place&) { state.kept[1].buckets[0].pop_back(); });
  for (const std::string& each : fewer.refused) CHECK(has(each, "was given first moments that do not fit bucket 0"));
  const auto none = train(run, stages, nullptr, 1, [](SavedState& state, const Place&) { state.weights.clear(); });
  for (const std::string& each : none.refused) CHECK(has(each, "was given weights that do not fit bucket 0"));

  const auto refusal = [&](const std::vector<Parameter>& model, const std::vector<Layout>& layouts) {
    std::string sentence;
    run_ranks(Grid(), [&](TestRank& rank) {
      try {
        gather_checkpoint(rank.group("world"), model, layouts, rank.place, {});
      } catch (const std::invalid_argument& error) {
        sentence = error.what();
      }
      if (!rank.ledger.lines().empty()) sentence = "something was sent";
    });
    return sentence;
  };
  const Layout layout = plan_layout(run.parameters, Grid());
  CHECK(refusal(run.parameters, {layout, layout}) ==
        "gather_checkpoint was given 2 layouts, for dp 1 × tp 1 and dp 1 × tp 1; it takes one for each stage of one "
        "grid.");
  const Layout of_two = plan_layout(run.parameters, Grid().pp(2));
  CHECK(refusal(run.parameters, {of_two, plan_layout(run.parameters, Grid().tp(2).pp(2))}) ==
        "gather_checkpoint was given 2 layouts, for dp 1 × tp 1 × pp 2 and dp 1 × tp 2 × pp 2; it takes one for each "
        "stage of one grid.");
  CHECK(usage_error([] { refuse_checkpoint("", "it is empty", "save another one"); }) ==
        "can't use what was gathered as a checkpoint: it is empty; save another one");
  std::vector<Parameter> other = run.parameters;
  other.push_back({"more", {2, 2}});
  CHECK(refusal(other, {layout}) == "gather_checkpoint was given layouts without \"more\", which is in the model.");
  other = run.parameters;
  other[0].shape.rows = 13;
  CHECK(refusal(other, {layout}) ==
        "gather_checkpoint was given a layout with \"embed\", which is not in the model, or of another shape.");
}
