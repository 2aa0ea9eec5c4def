// Training a model on a grid: losses, norms and weights of every step are those of one process, bit for bit, and a step
// does what its plan lists, call by call.
#include "src/train/gpt_training.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "src/layout/slicing.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/pipeline/model_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

constexpr std::uint32_t kCases = 40;
constexpr std::size_t kOrders = 5;  // of turns, in each case: 200 in all
constexpr int kSteps = 2;

GptTraining training_of(const ModelCase& c) {
  GptTraining training;
  training.config = c.config;
  training.micro_batches = c.micro_batches;
  training.sequences = c.sequences;
  training.schedule = c.schedule;
  training.seed = c.seed;
  training.adamw_alone = c.seed % 4 == 0;
  training.decay_vectors = c.seed % 3 == 0;
  training.max_norm = c.seed % 5 == 0 ? 100.0f : 0.1f;
  training.bucket_capacity = c.seed % 2 == 0 ? 200 : 0;
  training.muon.newton_schulz.products = c.seed % 2 == 0 ? Products::chain : Products::eigen;
  training.muon.newton_schulz.steps = 3;
  while (c.config.experts > 0 && c.grid.dp() % (2 * training.ep) == 0 && (training.ep == 1 || c.seed % 2 == 0))
    training.ep *= 2;
  return training;
}

float rate_of(int step) { return step == 0 ? 0.5f : 1.0f; }

// The micro-batches of a step differ from those of the step before.
std::vector<MicroBatch> batch_of(const ModelCase& c, int step, Range range) {
  std::vector<MicroBatch> batches;
  for (Index i = range.begin; i < range.end; ++i)
    batches.push_back(c.micro_batch(static_cast<int>(i) + step * c.micro_batches));
  return batches;
}

// What a rank has after a step.
struct AfterStep {
  StepReport report;
  std::vector<NamedMatrix> weights;
  std::string unplanned;
};

std::vector<std::vector<AfterStep>> train_on_ranks(const ModelCase& c, const GptTraining& training,
                                                   const std::string& ep_group = "ep ") {
  std::vector<std::vector<AfterStep>> all(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    GptTrainer trainer(training, c.grid, rank.place);
    CallList list;
    for (const auto& group : rank.groups) group.second->observe(list);
    TrainingGroups groups{rank.dp, rank.tp, rank.group("pp"), rank.world};
    if (training.ep > 1) {
      groups.ep = &rank.group(ep_group + std::to_string(training.ep));
      groups.dp_over_ep = &rank.group("dp / ep " + std::to_string(training.ep));
    }
    if (rank.groups.count("first and last stage") > 0) groups.ends = &rank.group("first and last stage");
    for (int step = 0; step < kSteps; ++step) {
      list.calls.clear();
      rank.ledger = Ledger();
      AfterStep after;
      after.report = trainer.step(
          groups, batch_of(c, step, own_micro_batches(c.micro_batches, c.grid.dp(), rank.place.dp)), rate_of(step));
      after.weights = trainer.weights();
      after.unplanned = first_unplanned(training_plan(training, c.grid, rank.place), list.calls, rank.ledger);
      all[static_cast<std::size_t>(rank.place.rank)].push_back(std::move(after));
    }
  });
  return all;
}

// Where a rank is not where one process is; else empty.
std::string first_difference(const ModelCase& c, const GptTraining& training, const Place& place, const AfterStep& rank,
                             const StepReport& report, const std::vector<NamedMatrix>& whole) {
  if (!rank.unplanned.empty()) return rank.unplanned;
  if (std::memcmp(&rank.report.norm, &report.norm, sizeof(double)) != 0) return "norm";
  const ModelPart part = part_at(training, c.grid, place);
  if (part.last && std::memcmp(&rank.report.loss, &report.loss, sizeof(float)) != 0) return "loss";
  const std::vector<Parameter> parameters = part_parameters(training.config, part, c.grid.tp());
  if (parameters.size() != rank.weights.size()) return "not as many weights as tensors";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = std::find_if(whole.begin(), whole.end(),
                                    [&](const NamedMatrix& each) { return each.name == parameters[i].name; });
    if (found == whole.end() || rank.weights[i].name != parameters[i].name) return "names";
    if (!same_bits(rank.weights[i].matrix, tp_slice(found->matrix, parameters[i].tp_split_dim, c.grid.tp(), place.tp)))
      return parameters[i].name;
  }
  return "";
}

}  // namespace

TEST_CASE(
    "training: any grid, model, settings and order of turns: losses, norms and weights of one process, and the plan "
    "call by call") {
  std::set<std::string> seen;
  for (std::uint32_t seed = 1; seed <= kCases; ++seed) {
    const ModelCase c = random_model(seed);
    const GptTraining training = training_of(c);
    INFO(c.text());
    std::vector<std::vector<std::vector<AfterStep>>> ranks;  // [order of turns][rank][step]
    for (std::size_t order = 0; order < kOrders; ++order) ranks.push_back(train_on_ranks(c, training));
    SerialGptTrainer serial(training);
    for (int step = 0; step < kSteps; ++step) {
      const StepReport report = serial.step(batch_of(c, step, {0, c.micro_batches}), rate_of(step));
      seen.insert(report.norm > training.max_norm ? "clipped" : "not clipped");
      seen.insert("ep " + std::to_string(training.ep));
      for (std::size_t order = 0; order < kOrders; ++order)
        for (int rank = 0; rank < c.grid.size(); ++rank) {
          const AfterStep& after = ranks[order][static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)];
          INFO("order ", order, ", rank ", rank, ", step ", step);
          REQUIRE(first_difference(c, training, c.grid.place(rank), after, report, serial.weights()) == "");
        }
    }
  }
  CHECK(seen.size() == 5);  // ep 1, 2 and 4
}

// The first difference after any step on any rank; else empty.
std::string difference_from_serial(const ModelCase& c, const GptTraining& training, const std::string& ep_group) {
  const auto ranks = train_on_ranks(c, training, ep_group);
  SerialGptTrainer serial(training);
  for (int step = 0; step < kSteps; ++step) {
    const StepReport report = serial.step(batch_of(c, step, {0, c.micro_batches}), rate_of(step));
    for (int rank = 0; rank < c.grid.size(); ++rank) {
      const AfterStep& after = ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)];
      const std::string found = first_difference(c, training, c.grid.place(rank), after, report, serial.weights());
      if (!found.empty()) return found;
    }
  }
  return "";
}

TEST_CASE("training: experts on one, two and four DP ranks: one result, and not where two groups are mixed up") {
  ModelCase c;
  c.grid = Grid().dp(4);
  c.micro_batches = 8;
  c.seed = 3;
  c.config.width = 16;
  c.config.tokens = 9;
  c.config.experts = 4;
  for (const bool adamw_alone : {false, true})
    for (const int ep : {1, 2, 4}) {
      GptTraining training = training_of(c);
      training.ep = ep;
      training.adamw_alone = adamw_alone;
      CAPTURE(ep);
      CHECK(difference_from_serial(c, training, "ep ") == "");
      if (ep == 2) CHECK(difference_from_serial(c, training, "dp / ep ") != "");
    }
}

TEST_CASE("training: experts that can't be dealt out are refused in a sentence") {
  GptTraining training;
  const auto sentence = [](int ep, int experts) {
    return "--ep " + std::to_string(ep) + " can't deal out " + std::to_string(experts) +
           " experts to some of 4 data-parallel ranks; it takes a power of two that divides both numbers, for example "
           "--experts 4 --dp 4 --ep 2";
  };
  training.ep = 2;
  CHECK(usage_error([&] { require_trainable(training, Grid().dp(4)); }) == sentence(2, 0));
  training.config.experts = 6;
  require_trainable(training, Grid().dp(4));
  for (const int ep : {-1, 0, 3, 4, 8}) {
    training.ep = ep;
    CHECK(usage_error([&] { require_trainable(training, Grid().dp(4)); }) == sentence(ep, 6));
  }
  training.config.experts = 1;
  CHECK(usage_error([&] { require_trainable(training, Grid().dp(4)); }) ==
        "a router can't choose 2 of 1 experts; a model has no experts or at least 2");
}

TEST_CASE("training: what can't be trained on a grid is refused in a sentence") {
  GptTraining training;
  training.config.layers = 2;
  training.micro_batches = 8;
  CHECK(usage_error([&] { require_trainable(training, Grid().pp(3)); }).find("--pp 3") != std::string::npos);
  CHECK(usage_error([&] { require_trainable(training, Grid().tp(3)); }).find("--tp 3") != std::string::npos);
  CHECK(usage_error([&] { require_trainable(training, Grid().dp(3)); }) ==
        "--micro-batches 8 can't be dealt out to 3 data-parallel ranks; each of them needs 1, 2, 4, 8, … of them: try "
        "--micro-batches 3 or 6");
  CHECK(usage_error([&] { require_trainable(training, Grid().dp(4).tp(2).pp(2)); }) == "(no UsageError)");
}

TEST_CASE("training: who is stepped by what: AdamW alone steps all, and vectors decay only if asked") {
  GptTraining training;
  training.config.tied = true;
  const auto names = [&] {
    std::string all;
    for (const ParameterGroup& group : training_groups(training))
      all += group.name + ": " + group.make()->name() + "; ";
    return all;
  };
  CHECK(names() == "hidden matrices: Muon; embeddings and output: ZeRO-1 AdamW; vectors: ZeRO-1 AdamW; ");
  training.adamw_alone = true;
  CHECK(names() == "hidden matrices: ZeRO-1 AdamW; embeddings and output: ZeRO-1 AdamW; vectors: ZeRO-1 AdamW; ");
  CHECK(counted_elsewhere(training, Grid().pp(2), 1) == std::set<std::string>{"model.embed_tokens.weight"});
  CHECK(counted_elsewhere(training, Grid().pp(2), 0).empty());
  CHECK(counted_elsewhere(training, Grid(), 0).empty());

  // A step without gradients: what decays gets smaller by it, and what does not stays.
  for (const bool decays : {false, true}) {
    training.decay_vectors = decays;
    SerialGptTrainer trainer(training);
    std::vector<MicroBatch> batch(static_cast<std::size_t>(training.micro_batches));
    for (MicroBatch& each : batch) each.inputs.assign(32, 1), each.targets.assign(32, 2);
    training.max_norm = 1e-30f;  // next to nothing is left of them
    trainer.step(batch, 1);
    CHECK(trainer.weights()[1].name == "model.layers.0.input_layernorm.weight");
    CHECK((trainer.weights()[1].matrix(0, 0) < 1.0f) == decays);
  }
}
