// A model on a grid: losses and gradients of every rank are those of one process, bit for bit, and it does what its
// plan lists, call by call.
#include "src/train/pipeline/stage.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/pipeline/model_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

constexpr std::uint32_t kCases = 60;

// What one rank has after a step.
struct RankResult {
  PartGradients step;
  std::vector<Call> calls;
  Ledger counted;
  std::vector<PipelineMove> told;  // each move twice: as its work begins, and as it ends
};

PartGradients run_on(const ModelCase& c, TestRank& rank, RankResult& result) {
  const ModelPart part = stage_part(c.config, c.grid.pp(), rank.place.pp);
  std::vector<Matrix> slices;
  for (const Parameter& parameter : part_parameters(c.config, part, c.grid.tp()))
    slices.push_back(c.weights(parameter, c.grid.tp(), rank.place.tp));
  const PartTensors tensors = part_tensors(c.config, part, c.grid.tp(), std::move(slices));
  const Range own = own_micro_batches(c.micro_batches, c.grid.dp(), rank.place.dp);
  std::vector<MicroBatch> batches;
  for (Index i = own.begin; i < own.end; ++i) batches.push_back(c.micro_batch(static_cast<int>(i)));
  CallList list;
  for (const auto& group : rank.groups) group.second->observe(list);
  StageContext context{c.config, c.grid, rank.place, rank.tp, rank.group("pp")};
  if (rank.groups.count("first and last stage") > 0) context.ends = &rank.group("first and last stage");
  context.observe = [&result](PipelineMove move, bool) { result.told.push_back(move); };
  rank.ledger = Ledger();
  PartGradients gradients = run_stage(context, tensors, c.schedule, batches, c.scale());
  result.calls = std::move(list.calls);
  result.counted = rank.ledger;
  return gradients;
}

std::vector<RankResult> run_case(const ModelCase& c) {
  std::vector<RankResult> results(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    RankResult& result = results[static_cast<std::size_t>(rank.place.rank)];
    result.step = run_on(c, rank, result);
  });
  return results;
}

// Of all micro-batches on one process; gradients of a DP rank's own ones, and the loss of them.
PartGradients serial_step(const ModelCase& c, Range own) {
  std::vector<Matrix> whole;
  for (const Parameter& parameter : gpt_parameters(c.config)) whole.push_back(c.weights(parameter, 1, 0));
  const PartTensors tensors = part_tensors(c.config, whole_model(c.config), 1, std::move(whole));
  std::vector<PartGradients> leaves;
  for (Index i = own.begin; i < own.end; ++i)
    leaves.push_back(serial_leaf(c.config, tensors, c.micro_batch(static_cast<int>(i)), c.scale()));
  PartGradients sum;
  Flat losses;
  for (const PartGradients& leaf : leaves) losses.push_back(leaf.loss);
  sum.loss = tree_sum(losses.data(), own.size());
  for (std::size_t p = 0; p < leaves[0].gradients.size(); ++p) {
    std::vector<Flat> parts;
    for (const PartGradients& leaf : leaves) parts.push_back(leaf.gradients[p].flat());
    sum.gradients.push_back(Matrix(leaves[0].gradients[p].rows(), leaves[0].gradients[p].cols(), tree_sum(parts)));
  }
  return sum;
}

// The gradient on a rank that is not that of one process; else empty.
std::string first_difference(const ModelCase& c, const std::vector<RankResult>& results) {
  const std::vector<Parameter> all = gpt_parameters(c.config);
  for (int dp = 0; dp < c.grid.dp(); ++dp) {
    const PartGradients serial = serial_step(c, own_micro_batches(c.micro_batches, c.grid.dp(), dp));
    for (int pp = 0; pp < c.grid.pp(); ++pp)
      for (int tp = 0; tp < c.grid.tp(); ++tp) {
        const int rank = c.grid.rank(dp, tp, pp);
        const PartGradients& step = results[static_cast<std::size_t>(rank)].step;
        const std::string where = "rank " + std::to_string(rank) + ": ";
        if (pp == c.grid.pp() - 1 && std::memcmp(&step.loss, &serial.loss, sizeof(float)) != 0) return where + "loss";
        const std::vector<Parameter> own =
            part_parameters(c.config, stage_part(c.config, c.grid.pp(), pp), c.grid.tp());
        if (own.size() != step.gradients.size()) return where + "not as many gradients as tensors";
        for (std::size_t i = 0; i < own.size(); ++i) {
          std::size_t number = 0;
          while (all[number].name != own[i].name) ++number;
          if (!same_bits(step.gradients[i], tp_slice(serial.gradients[number], own[i].tp_split_dim, c.grid.tp(), tp)))
            return where + own[i].name;
        }
      }
  }
  return "";
}

// Where a rank's calls are not those of its plan; else empty.
std::string first_unplanned_of_all(const ModelCase& c, const std::vector<RankResult>& results) {
  for (int rank = 0; rank < c.grid.size(); ++rank) {
    const RankResult& result = results[static_cast<std::size_t>(rank)];
    const Plan plan =
        stage_plan(c.config, c.grid, c.grid.place(rank), c.schedule, c.micro_batches / c.grid.dp(), c.rows());
    const std::string difference = first_unplanned(plan, result.calls, result.counted);
    if (!difference.empty()) return "rank " + std::to_string(rank) + ": " + difference;
  }
  return "";
}

// Every move is told twice, one after the other, in the order of the schedule.
bool told_in_order(const ModelCase& c, int stage, const std::vector<PipelineMove>& told) {
  const std::vector<PipelineMove> moves = pipeline_moves(c.schedule, c.grid.pp(), stage, c.micro_batches / c.grid.dp());
  if (told.size() != 2 * moves.size()) return false;
  for (std::size_t i = 0; i < told.size(); ++i)
    if (!(told[i] == moves[i / 2])) return false;
  return true;
}

// Operations of all matrices that a token of `rows` goes through in a forward pass of the layers: two per element, of
// experts for each of their slots; and the same of the output layer.
double weight_flops(const GptConfig& config, const ModelPart& part, Index rows) {
  double sum = 0;
  for (const Parameter& parameter : part_parameters(config, {part.layers, false, false})) {
    const double seen = parameter.name.find(".experts.") != std::string::npos
                            ? static_cast<double>(config.capacity(rows)) / static_cast<double>(rows)
                            : 1.0;
    if (parameter.dims == 2) sum += 2 * seen * static_cast<double>(parameter.shape.size());
  }
  return sum + (part.last ? 2 * static_cast<double>(config.vocabulary * config.width) : 0);
}

}  // namespace

TEST_CASE("stage_plan: the operations of each move are those of its matrices and of the scores, shared by TP ranks") {
  for (std::uint32_t seed = 1; seed <= 80; ++seed) {
    const ModelCase c = random_model(seed);
    INFO(c.text());
    const double rows = static_cast<double>(c.rows()), tokens = static_cast<double>(c.config.tokens);
    const int micro_batches = c.micro_batches / c.grid.dp();
    for (int stage = 0; stage < c.grid.pp(); ++stage) {
      const ModelPart part = stage_part(c.config, c.grid.pp(), stage);
      // Of each head's scores, and of what they mix: as many channels as the model has, and half of the square.
      const double scores = 2 * 2 * rows * (tokens + 1) / 2 * static_cast<double>(c.config.width * part.layers.size());
      const double all = rows * weight_flops(c.config, part, c.rows()) + scores;
      double forward = 0, backward = 0;
      int forwards = 0, backwards = 0, tied = 0;
      for (int tp = 0; tp < c.grid.tp(); ++tp) {
        const Plan plan =
            stage_plan(c.config, c.grid, c.grid.place(c.grid.rank(0, tp, stage)), c.schedule, micro_batches, c.rows());
        for (const Operation& operation : plan.operations)
          if (const Work* work = std::get_if<Work>(&operation)) {
            const bool is_tied = work->phase == phases::tied_embedding, goes_on = work->phase == phases::forward;
            tied += is_tied ? 1 : 0;
            if (is_tied) {
              CHECK(work->shape == Shape{c.config.vocabulary / c.grid.tp(), c.config.width});
              CHECK(work->flops == 0);
              continue;
            }
            CHECK(work->shape == Shape{c.rows(), c.config.width});
            (goes_on ? forward : backward) += work->flops;
            ++(goes_on ? forwards : backwards);
          }
      }
      CHECK(forwards == micro_batches * c.grid.tp());
      CHECK(backwards == forwards);
      CHECK(tied == (c.config.tied && c.grid.pp() > 1 && (part.first || part.last) ? c.grid.tp() : 0));
      CHECK(backward == doctest::Approx(2 * forward));
      // What is not shared, every TP rank does: keys and values of fewer heads than ranks, and the router.
      const double tp = c.grid.tp(), width = static_cast<double>(c.config.width),
                   layers = static_cast<double>(part.layers.size());
      const double kv_heads = static_cast<double>(c.config.kv_heads), head = static_cast<double>(c.config.head_width());
      const double experts = static_cast<double>(c.config.experts);
      const double again = rows * layers * width * 2 * (2 * std::max(0.0, tp - kv_heads) * head + (tp - 1) * experts);
      CHECK(forward / micro_batches == doctest::Approx(all + again));
    }
  }
}

TEST_CASE("activation_elements: by hand, of one layer on one rank and on two") {
  GptConfig config;
  config.vocabulary = 24;
  config.width = 16;
  config.layers = 5;
  config.heads = 4;
  config.kv_heads = 2;
  config.hidden = 44;
  config.tokens = 7;
  // Four times the width, two roots, queries and what is mixed, keys and values, scores, and three times the inner
  // width.
  CHECK(activation_elements(config, {{0, 1}, true, false}, 1, 14) == 14 * (64 + 2 + 32 + 16 + 28 + 132));
  CHECK(activation_elements(config, {{1, 4}, false, false}, 2, 7) == 7 * 3 * (64 + 2 + 16 + 8 + 14 + 66));
  // The end: what came in, what the output layer saw, a root, logits, most and sum, and the loss.
  CHECK(activation_elements(config, {{4, 4}, false, true}, 2, 7) == 7 * (32 + 1 + 12 + 3));
  // Three experts, of which a token has one: 7 / 3 · 1.25 rows fit, 3. Each has them as they come, as they go, and
  // three times the inner width; and each row has a share of each.
  config.experts = 3;
  config.chosen = 1;
  CHECK(activation_elements(config, {{0, 1}, true, false}, 1, 7) == 7 * (64 + 2 + 32 + 16 + 28 + 3) + 9 * (32 + 132));
}

TEST_CASE("stage: a tied embedding on two stages needs the group of both") {
  ModelCase c;
  for (c = random_model(1); !(c.config.tied && c.grid.pp() > 1);
       c = random_model(static_cast<std::uint32_t>(c.seed) + 1))
    ;
  std::set<std::string> said;
  std::mutex one;
  run_ranks(c.grid, [&](TestRank& rank) {
    if (rank.place.pp != 0 && rank.place.pp != c.grid.pp() - 1) return;
    StageContext context{c.config, c.grid, rank.place, rank.tp, rank.group("pp")};
    try {
      run_stage(context, PartTensors(), c.schedule, {}, 1);
    } catch (const std::invalid_argument& error) {
      const std::lock_guard<std::mutex> lock(one);
      said.insert((rank.place.pp == 0 ? "first: " : "last: ") + std::string(error.what()));
    }
  });
  const std::string sentence = "a tied embedding on two stages needs the group of first and last stage";
  CHECK(said == std::set<std::string>{"first: " + sentence, "last: " + sentence});
}

TEST_CASE("stage: micro-batches are dealt out in whole subtrees, and one rank may have any number of them") {
  for (int dp = 1; dp <= 9; ++dp)
    for (int micro_batches = -1; micro_batches <= 40; ++micro_batches) {
      CAPTURE(dp);
      CAPTURE(micro_batches);
      const std::set<int> shares = {dp, 2 * dp, 4 * dp, 8 * dp, 16 * dp, 32 * dp};
      if (dp == 1 ? micro_batches >= 1 : shares.count(micro_batches) == 1) {
        for (int rank = 0; rank < dp; ++rank) {
          const Range own = own_micro_batches(micro_batches, dp, rank);
          CHECK(own.begin == rank * (micro_batches / dp));
          CHECK(own.end == (rank + 1) * (micro_batches / dp));
        }
      } else {
        const std::string sentence = fmt::format(
            "--micro-batches {} can't be dealt out to {} data-parallel ranks; each of them needs 1, 2, 4, 8, … of "
            "them: try --micro-batches {} or {}",
            micro_batches, dp, dp, 2 * dp);
        CHECK_THROWS_WITH_AS(own_micro_batches(micro_batches, dp, 0), sentence.c_str(), UsageError);
      }
    }
}

TEST_CASE("stage: any grid, model and schedule: the gradients and losses of one process, and the plan call by call") {
  std::set<std::string> seen;
  for (std::uint32_t seed = 1; seed <= kCases; ++seed) {
    const ModelCase c = random_model(seed);
    INFO(c.text());
    const std::vector<RankResult> results = run_case(c);
    REQUIRE(first_difference(c, results) == "");
    REQUIRE(first_unplanned_of_all(c, results) == "");
    for (int rank = 0; rank < c.grid.size(); ++rank)
      REQUIRE(told_in_order(c, c.grid.place(rank).pp, results[static_cast<std::size_t>(rank)].told));
    if (c.config.tied && c.grid.pp() > 1) seen.insert("tied over stages");
    if (c.config.kv_heads < c.grid.tp()) seen.insert("fewer kv heads than tp");
    if (c.grid.pp() > 1 && c.schedule == PipelineSchedule::one_f_one_b) seen.insert("1f1b");
    if (c.grid.dp() == 3) seen.insert("dp 3");
  }
  CHECK(seen.size() == 4);
}
