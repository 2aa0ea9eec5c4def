// What lesson 09 is asked for, and the two tables that it prints from plans.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <regex>

#include "lessons/lesson_09_full_step/full_step_request.hpp"
#include "lessons/lesson_09_full_step/plan_tables.hpp"
#include "src/errors.hpp"
#include "src/layout/small_layer.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::lines_of;

namespace {

Plan plan_of(const Layout& layout, const Place& place) { return muon_plan(layout, place, {}); }

long long number(std::string digits) {
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  return std::stoll(digits);
}

// The bytes at the end of each line but the last, added up, and those of the last.
std::pair<long long, long long> sent(const std::vector<std::string>& lines) {
  const std::regex bytes(".* ([0-9,]+) B");
  std::pair<long long, long long> sums;
  for (const std::string& line : lines) {
    std::smatch found;
    if (!std::regex_match(line, found, bytes)) continue;
    (line.rfind("  all ", 0) == 0 ? sums.second : sums.first) += number(found[1]);
  }
  return sums;
}

std::vector<Parameter> many_parameters(int count) {
  std::vector<Parameter> parameters;
  for (int p = 0; p < count; ++p) parameters.push_back({"layer." + std::to_string(p), {8, 8}, SplitDim::rows});
  return parameters;
}

}  // namespace

TEST_CASE("a step as a rank takes it: each phase with what goes in, what comes out, and what is sent") {
  const Grid grid = Grid().dp(4).tp(2);
  const Layout layout = FullStepRequest().layout(proof_of_concept_parameters(), grid, 0);
  const std::string text = step_table(plan_of(layout, grid.place(0)), layout, 5);
  CAPTURE(text);
  // Rank 0 owns 385,912 / 4 elements: all of w0, w1 and w2, and the beginning of w3.
  for (const char* row :
       {"reduce-scatter of gradients +385,912 elements +96,478 elements +1,157,736 B",
        "momentum +96,478 elements +96,478 elements", "DP gather +96,478 elements +385,912 elements +1,157,736 B",
        "  w0 +TP gather +50 × 100 +100 × 100 +20,000 B",
        "  w2 +TP gather +456 × 124 +456 × 124",  // TP does not cut it
        "  w3 +TP gather +676 × 438 +676 × 876 +1,184,352 B", "Newton–Schulz +676 × 876 +676 × 876",
        "TP shard +676 × 876 +676 × 438", "DP shard +676 × 438 +14,846 elements",
        "apply +14,846 elements +14,846 elements",
        "all-gather of weights +96,478 elements +385,912 elements +1,157,736 B"}) {
    bool found = false;
    for (const std::string& line : lines_of(text)) found |= std::regex_match(line, std::regex(" *" + std::string(row)));
    CHECK_MESSAGE(found, row);
  }
  CHECK(text.find("w4") == std::string::npos);  // of which it owns no element
}

TEST_CASE("a step as a rank takes it: on any rank and layout the bytes add up to those of the plan") {
  for (const char* ownership : {"buckets", "matrices"})
    for (const int capacity : {0, 50000})
      for (const Grid& grid : {Grid(), Grid().dp(4).tp(2), Grid().dp(2).tp(4), Grid().dp(3)}) {
        FullStepRequest request;
        request.bucket_capacity = capacity;
        request.ownership = ownership;
        const Layout layout = request.layout(proof_of_concept_parameters(), grid, 0);
        for (int rank = 0; rank < grid.size(); ++rank) {
          const Plan plan = plan_of(layout, grid.place(rank));
          const std::string text = step_table(plan, layout, 5);
          CAPTURE(text);
          const auto [rows, all] = sent(lines_of(text));
          CHECK(all == ledger_of(plan).total().bytes_sent);
          if (capacity == 0) CHECK(rows == all);
          const std::size_t more = layout.buffers[0].buckets.size() - 1;
          CHECK((more > 0) == (capacity > 0));
          if (more > 0)
            CHECK(text.find(fmt::format("not shown, but in the sum: {} more buckets", more)) != std::string::npos);
          for (const std::string& line : lines_of(text)) CHECK(text_width(line) <= 100);
        }
      }
}

TEST_CASE("a step as a rank takes it: of many matrices with long names the largest are shown, the others counted") {
  std::vector<Parameter> parameters = many_parameters(9);
  parameters[1].name = std::string(300, 'x') + "\n";
  parameters[7].shape = {8, 16};
  const Grid grid = Grid().dp(1).tp(2);
  const Layout layout = FullStepRequest().layout(parameters, grid, 0);
  const std::string text = step_table(plan_of(layout, grid.place(0)), layout, 5);
  CAPTURE(text);
  for (const char* shown : {"layer.0", "layer.2", "layer.3", "layer.7"}) CHECK(text.find(shown) != std::string::npos);
  for (const char* hidden : {"layer.4", "layer.5", "layer.6", "layer.8"}) CHECK(text.find(hidden) == std::string::npos);
  CHECK(text.find("not shown, but in the sum: 4 smaller matrices of this bucket") != std::string::npos);
  for (const std::string& line : lines_of(text)) CHECK(text_width(line) <= 100);
  const std::string one = step_table(plan_of(layout, grid.place(0)), layout, 1);
  CHECK(one.find("layer.7") != std::string::npos);
  CHECK(one.find("8 smaller matrices") != std::string::npos);
  CHECK_THROWS_AS(step_table(plan_of(layout, grid.place(0)), FullStepRequest().layout(many_parameters(2), grid, 0), 5),
                  std::out_of_range);
}

TEST_CASE("redundant work: with buckets nearly every matrix is cut, and the work goes to its upper bound") {
  for (const Grid& grid : {Grid().dp(4).tp(2), Grid().dp(2).tp(2).pp(2)}) {
    std::vector<WorkOfLayout> layouts;
    const FullStepRequest request;
    const auto parameters = proof_of_concept_parameters();
    for (const FullStepRequest& asked : {request, request.with_other_buckets()}) {
      const std::vector<Layout> stages = asked.layouts(parameters, grid);
      layouts.push_back({asked.buckets_text(), stages, plan_kinds(stages, plan_of)});
    }
    const std::string text = work_table(plan_of(plan_layout(parameters, Grid()), Place()), layouts);
    CAPTURE(text);
    std::vector<double> factors;
    const std::regex row("        .*[0-9]+\\.[0-9]+ +([0-9]+\\.[0-9]+)(   .*)?");
    for (const std::string& line : lines_of(text)) {
      CHECK(text_width(line) <= 100);
      std::smatch found;
      if (std::regex_match(line, found, row)) factors.push_back(std::stod(found[1]));
    }
    REQUIRE(factors.size() == 4);
    CHECK(factors[0] == 1);
    CHECK(factors[1] < factors[2]);
    CHECK(factors[2] < factors[3]);
    CHECK(factors[3] == grid.dp() * grid.tp());
    // The same sums, by hand: who owns an element of a matrix does all of it.
    for (std::size_t i = 0; i < 2; ++i) {
      double all = 0, once = 0;
      for (const Layout& stage : layouts[i].stages)
        for (const DistMeta& meta : stage.buffers[0].parameters) {
          const double one = newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, 5);
          once += one;
          all += one * static_cast<double>(stage.owners(meta).size()) * grid.tp();
        }
      CHECK(factors[i + 1] == near(all / once, 0.005 / (all / once)));  // printed with two digits
    }
    if (grid.pp() == 1) CHECK(text.find("w0 2 ranks, w1 4, w2 6, w3 8, w4 8") != std::string::npos);
  }
  MuonSettings none;
  none.newton_schulz.steps = 0;
  const Layout alone = plan_layout(proof_of_concept_parameters(), Grid());
  CHECK(work_table(muon_plan(alone, Place(), none), {}) == "work    there is no Newton–Schulz in a step");
}

TEST_CASE("what lesson 09 is asked for: other buckets to compare with, and stages that there must be matrices for") {
  FullStepRequest request;
  CHECK(request.buckets_text() == "one bucket");
  CHECK(request.with_other_buckets().buckets_text() == "buckets of 50,000 elements");
  request.training.small = true;
  CHECK(request.with_other_buckets().bucket_capacity == 781);
  request.bucket_capacity = 1;
  CHECK(request.buckets_text() == "buckets of 1 element");
  CHECK(request.with_other_buckets().buckets_text() == "one bucket");

  const std::vector<Layout> stages = FullStepRequest().layouts(many_parameters(5), Grid().pp(2));
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].buffers[0].parameters.size() + stages[1].buffers[0].parameters.size() == 5);
  CHECK_THROWS_WITH_AS(FullStepRequest().layouts(many_parameters(2), Grid().pp(3)),
                       "--pp 3 asks for more stages than there are parameters; try --pp 2", UsageError);
  request.ownership = "rows";
  CHECK_THROWS_AS(request.layout(many_parameters(2), Grid(), 0), UsageError);

  FullStepRequest settled;
  settled.no_nesterov = true;
  RankInfo rank;
  rank.precision = Precision::bf16;
  rank.products = Products::chain;
  settled.settle(rank);
  CHECK_FALSE(settled.muon.nesterov);
  CHECK(settled.muon.newton_schulz.precision == Precision::bf16);
  CHECK(settled.muon.newton_schulz.products == Products::chain);
  settled.asked.lr = -1;
  CHECK_THROWS_AS(settled.settle(rank), UsageError);
}

TEST_CASE("what lesson 09 is asked for: a recipe with its own numbers, and what goes with it or against it") {
  const auto error = [](const std::function<void(FullStepRequest&)>& ask) {
    FullStepRequest request;
    ask(request);
    return usage_error([&] { request.settle(RankInfo()); });
  };
  FullStepRequest request;
  CHECK(request.recipe_text().empty());
  request.recipe = "normuon";
  request.asked.beta2 = 0.5;
  request.nesterov = true;
  request.settle(RankInfo());
  CHECK(request.muon.lr == 0.01f);
  CHECK(request.muon.momentum == 0.95);
  CHECK(request.muon.second_moment.beta2 == 0.5f);
  CHECK(request.muon.nesterov);
  CHECK(request.recipe_text() ==
        "recipe  normuon: NorMuon of dion (microsoft/dion 0a059a45, 2026-08-07, dion/normuon.py,\n"
        "        polar_express.py); lr 0.01, momentum 0.95, weight decay 0.01, Nesterov on, 5 steps of\n"
        "        polar_dion\n");
  CHECK(error([](FullStepRequest& r) { r.nesterov = r.no_nesterov = true; }) ==
        "--nesterov and --no-nesterov contradict each other; leave one out");
  CHECK(error([](FullStepRequest& r) { r.recipe = "torch", r.rms = 0.3; }) ==
        "--rms has no place in --recipe torch, whose scale is fixed; leave it out");
  CHECK(error([](FullStepRequest& r) {
          r.recipe = "torch", r.asked.steps = 101;
        }).find("--ns-steps 101 makes no sense") == 0);
  for (const auto& [option, ask] : std::vector<std::pair<std::string, std::function<void(FullStepRequest&)>>>{
           {"--beta2", [](FullStepRequest& r) { r.asked.beta2 = 0.5; }},
           {"--cautious", [](FullStepRequest& r) { r.asked.cautious = true; }},
           {"--adjust-lr", [](FullStepRequest& r) { r.asked.scale = "original"; }}})
    CHECK(error(ask) == option + " goes with --recipe, which was not given; add for example --recipe normuon");
}

TEST_CASE("what lesson 09 is asked for: which optimizer steps what, with files of one's own and without") {
  const std::vector<Parameter> parameters = {
      {"wte", {8, 4}}, {"q", {4, 4}}, {"gate", {4, 4}}, {"norm", {1, 4}, SplitDim::none, 0, 1}};
  FullStepRequest request;
  request.training.files.params = "P";
  CHECK(request.groups_text(parameters) ==
        "Muon steps the hidden matrices: q, gate\n"
        "ZeRO-1 AdamW steps the embeddings and output: wte\n"
        "ZeRO-1 AdamW steps the vectors: norm\n");
  CHECK(request.groups_text({parameters[1]}) == "Muon steps the hidden matrices: q\n");
  request.adamw_for = {"ga*"};
  CHECK(request.groups_text(parameters).find("ZeRO-1 AdamW steps the embeddings and output: wte, gate\n") !=
        std::string::npos);
  CHECK(request.optimizer(parameters)->name() == "Muon + ZeRO-1 AdamW");
  for (const std::string name : {"no", "norm"}) {  // the second is a vector
    request.adamw_for = {"ga*", name};
    CHECK(usage_error([&] { request.optimizer(parameters); }) == "--adamw-for " + name + " names no matrix of \"P\"");
  }

  const std::string of_adamw =
      "options that begin with --adamw go with --params, which was not given: without files of yours, all parameters "
      "are hidden matrices; add --params FILE.safetensors";
  const std::vector<std::function<void(FullStepRequest&)>> changes = {
      [](FullStepRequest& r) { r.adamw.lr = 0.5f; },      [](FullStepRequest& r) { r.adamw.weight_decay = 0.5f; },
      [](FullStepRequest& r) { r.adamw.beta1 = 0.5f; },   [](FullStepRequest& r) { r.adamw.beta2 = 0.5f; },
      [](FullStepRequest& r) { r.adamw.epsilon = 0.5f; }, [](FullStepRequest& r) { r.adamw_for = {"q"}; }};
  for (const auto& change : changes)
    for (const bool own : {false, true}) {
      FullStepRequest asked;
      change(asked);
      if (own) asked.training.files.params = "P";
      CHECK(usage_error([&] { asked.settle(RankInfo()); }) == (own ? "(no UsageError)" : of_adamw));
    }
  FullStepRequest wrong;
  wrong.training.files.params = "P";
  wrong.adamw.beta2 = 1;
  CHECK(usage_error([&] { wrong.settle(RankInfo()); }).find("--adamw-beta2 1 makes no sense") == 0);

  request.alignment = 16;
  request.bucket_capacity = 30;
  request.ownership = "buffer";
  const LayoutOptions options = request.layout(parameters, Grid().dp(2), 0).options;
  CHECK(options.parameter_alignment == 16);
  CHECK(options.bucket_capacity == 30);
  CHECK(options.ownership == Ownership::buffer);
  CHECK(request.with_other_buckets().bucket_capacity == 0);
}

TEST_CASE("requested_training: what can't be done is refused in a sentence, at both ends of what can") {
  const auto refusal = [](const std::function<void(TrainingRequest&)>& ask) {
    TrainingRequest request;
    ask(request);
    return usage_error([&] { requested_training(request, 1, 1); });
  };
  const std::string none = "(no UsageError)";
  for (const int steps : {1, 1000}) CHECK(refusal([=](TrainingRequest& r) { r.steps = steps; }) == none);
  for (const int steps : {-1, 0, 1001})
    CHECK(refusal([=](TrainingRequest& r) { r.steps = steps; }) ==
          "--steps " + std::to_string(steps) + " makes no sense; it takes a whole number from 1 to 1000");
  using Ask = std::function<void(TrainingRequest&)>;
  // Files without --params, and two options that each bring matrices of their own; the sentence names them.
  for (const Ask& ask :
       {Ask([](TrainingRequest& r) { r.files.grads = {"G"}; }), Ask([](TrainingRequest& r) { r.files.out = "O"; }),
        Ask([](TrainingRequest& r) { r.files.frozen = {"w0"}; }),
        Ask([](TrainingRequest& r) { r.files.split = {"w"}; }),
        Ask([](TrainingRequest& r) { r.files.momentum_in = "M"; }),
        Ask([](TrainingRequest& r) { r.files.momentum_out = "M"; })})
    CHECK(refusal(ask).rfind("--grads, --out, --frozen, --split and --momentum-… go with --params", 0) == 0);
  const Ask model = [](TrainingRequest& r) { r.model = "llama-3-70b", r.plan = true; };
  const Ask toy = [](TrainingRequest& r) { r.toy = true; };
  CHECK(refusal(model) == none);
  CHECK(refusal(toy) == none);
  CHECK(refusal([&](TrainingRequest& r) { model(r), r.plan = false; }).find("add --plan") != std::string::npos);
  CHECK(refusal([&](TrainingRequest& r) { model(r), toy(r); }) ==
        "--model llama-3-70b has matrices of its own; leave out --toy");
  const std::vector<std::pair<std::string, Ask>> others = {
      {"--small", [](TrainingRequest& r) { r.small = true; }},
      {"--params", [](TrainingRequest& r) { r.files.params = "P"; }}};
  for (const auto& [option, other] : others)
    for (const Ask& one : {model, toy})
      CHECK(refusal([&, &also = other](TrainingRequest& r) {
              one(r), also(r);
            }).find("has matrices of its own; leave out " + option) != std::string::npos);
  TrainingRequest of_layer;
  of_layer.toy = true;
  REQUIRE(requested_training(of_layer, 1, 1)->parameters().size() == small_layer().size());
  for (std::size_t p = 0; p < small_layer().size(); ++p)
    CHECK(requested_training(of_layer, 1, 1)->parameters()[p].shape == small_layer()[p].shape);
  TrainingRequest small;
  small.small = true;
  small.steps = 7;
  CHECK(requested_training(small, 1, 1)->steps() == 7);
  CHECK(requested_training(small, 1, 1)->parameters()[3].shape == small_parameters()[3].shape);
  CHECK(requested_training({}, 1, 1)->parameters()[3].shape == proof_of_concept_parameters()[3].shape);
}
