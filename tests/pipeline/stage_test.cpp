// A model on a grid: losses and gradients of every rank are those of one process, bit for bit, and it does what its
// plan lists, call by call.
#include "src/pipeline/stage.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/optim/rank_threads.hpp"
#include "tests/pipeline/model_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// ThreadSanitizer takes thirty times as long for each case.
#ifdef __SANITIZE_THREAD__
constexpr std::uint32_t kCases = 8;
#else
constexpr std::uint32_t kCases = 60;
#endif

// What one rank has after a step.
struct RankResult {
  StageGradients step;
  std::vector<Call> calls;
  Ledger counted;
  Index most_held = 0;  // activations, in elements, between two moves
};

StageGradients run_on(const ModelCase& c, TestRank& rank, RankResult& result) {
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
  rank.ledger.clear();
  StageGradients gradients = run_stage(context, tensors, c.schedule, batches, c.scale());
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
LeafOfStep serial_step(const ModelCase& c, Range own) {
  std::vector<Matrix> whole;
  for (const Parameter& parameter : gpt_parameters(c.config)) whole.push_back(c.weights(parameter, 1, 0));
  const PartTensors tensors = part_tensors(c.config, whole_model(c.config), 1, std::move(whole));
  std::vector<LeafOfStep> leaves;
  for (Index i = own.begin; i < own.end; ++i)
    leaves.push_back(serial_leaf(c.config, tensors, c.micro_batch(static_cast<int>(i)), c.scale()));
  LeafOfStep sum;
  Flat losses;
  for (const LeafOfStep& leaf : leaves) losses.push_back(leaf.loss);
  sum.loss = tree_sum(losses.data(), own.size());
  for (std::size_t p = 0; p < leaves[0].gradients.size(); ++p) {
    std::vector<Flat> parts;
    for (const LeafOfStep& leaf : leaves) parts.push_back(leaf.gradients[p].flat());
    sum.gradients.push_back(Matrix(leaves[0].gradients[p].rows(), leaves[0].gradients[p].cols(), tree_sum(parts)));
  }
  return sum;
}

// The gradient on a rank that is not that of one process; else empty.
std::string first_difference(const ModelCase& c, const std::vector<RankResult>& results) {
  const std::vector<Parameter> all = gpt_parameters(c.config);
  for (int dp = 0; dp < c.grid.dp(); ++dp) {
    const LeafOfStep serial = serial_step(c, own_micro_batches(c.micro_batches, c.grid.dp(), dp));
    for (int pp = 0; pp < c.grid.pp(); ++pp)
      for (int tp = 0; tp < c.grid.tp(); ++tp) {
        const int rank = c.grid.rank(dp, tp, pp);
        const StageGradients& step = results[static_cast<std::size_t>(rank)].step;
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

}  // namespace

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
    if (c.config.tied && c.grid.pp() > 1) seen.insert("tied over stages");
    if (c.config.kv_heads < c.grid.tp()) seen.insert("fewer kv heads than tp");
    if (c.config.experts > 0 && c.grid.tp() > 1) seen.insert("experts over tp");
    if (c.grid.pp() > 1 && c.schedule == PipelineSchedule::one_f_one_b) seen.insert("1f1b");
    if (c.grid.dp() == 3) seen.insert("dp 3");
  }
#ifndef __SANITIZE_THREAD__
  CHECK(seen.size() == 5);
#endif
}
