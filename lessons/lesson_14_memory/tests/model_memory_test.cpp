// Models of real size, planned.
#include <doctest/doctest.h>

#include <algorithm>

#include "lessons/lesson_14_memory/memory_tables.hpp"
#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/text/text.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::lines_of;

namespace {

double per_parameter(Index bytes, Index parameters) {
  return static_cast<double>(bytes) / static_cast<double>(parameters);
}

}  // namespace

TEST_CASE("shares_of: the parts are the whole, and mixtures of experts are nearly all experts") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const ModelShares shares = shares_of(model_tensors(name));
    CHECK(shares.hidden + shares.experts + shares.outer + shares.vectors == shares.all);
    Index muons = 0;
    for (const Parameter& parameter : model_parameters(name)) muons += parameter.shape.size();
    CHECK(shares.muons() == muons);
  }
  const ModelShares gpt2 = shares_of(model_tensors("gpt2"));
  CHECK(gpt2.all == 124439808);
  CHECK(gpt2.outer == Index{768} * (50257 + 1024));
  CHECK(gpt2.experts == 0);
}

TEST_CASE("model_memory: bytes per parameter are those of the formulas, but for padding") {
  for (const int dp : {2, 8, 64}) {
    const ModelMemory memory = model_memory("llama-7b", Grid().dp(dp).tp(8));
    const Index n = memory.of_rank.hidden;
    CHECK(per_parameter(memory.replicated.adamw.kept_for_hidden, n) == near(18, 1e-4));
    CHECK(per_parameter(memory.replicated.muon.kept_for_hidden, n) == near(14, 1e-4));
    CHECK(per_parameter(memory.sharded.adamw.kept_for_hidden, n) == near(6 + 12.0 / dp, 1e-4));
    CHECK(per_parameter(memory.sharded.muon.kept_for_hidden, n) == near(6 + 8.0 / dp, 1e-4));
    CHECK(per_parameter(memory.sharded.adamw.held(), memory.of_rank.all) == near(6 + 12.0 / dp, 1e-4));
  }
}

TEST_CASE("model_memory: the same as the plan of the usual groups, for the rank that holds the most") {
  const Grid grid = Grid().dp(4);
  const ModelMemory memory = model_memory("gpt2", grid);
  std::vector<Parameter> parameters;
  for (const ModelTensor& tensor : model_tensors("gpt2")) parameters.push_back(tensor.parameter);
  parameters = route(std::move(parameters), usual_groups({}, {}));
  LayoutOptions options;
  options.bucket_capacity = 40000000;
  const Layout layout = plan_layout(parameters, grid, options);
  for (const bool muon : {true, false}) {
    std::vector<ParameterGroup> groups = usual_groups(muon_settings(Precision::bf16, 1, {}), {});
    if (!muon) groups[kHiddenMatrices].make = groups[1].make;
    const GroupedOptimizer optimizer(groups, parameters);
    const auto planned = [&](const Place& place) {
      const Layout hidden = layout.of_group(kHiddenMatrices);
      return planned_memory(with_master_weights(optimizer.plan(layout, place), layout),
                            with_master_weights(optimizer.plan(hidden, place), hidden));
    };
    const RankMemory& found = muon ? memory.sharded.muon : memory.sharded.adamw;
    const RankMemory expected = planned(memory.place);
    CHECK(found.kept == expected.kept);
    CHECK(found.kept_for_hidden == expected.kept_for_hidden);
    CHECK(found.phases == expected.phases);
    Index most = 0;
    for (int rank = 0; rank < grid.size(); ++rank) most = std::max(most, planned(grid.place(rank)).most());
    if (muon) CHECK(found.most() == most);
  }
}

TEST_CASE("model_text and models_table: models on any grid, in 100 columns") {
  for (const char* model : {"gpt2", "llama-7b", "moonlight-16b", "qwen3-30b"}) {
    const std::string text = model_text(model, Grid().dp(16));
    CAPTURE(text);
    CHECK(text.find("embeddings and output") != std::string::npos);
    for (const std::string& line : lines_of(text)) CHECK(text_width(line) <= kColumns);
  }
  const std::string table = models_table(Grid().dp(64));
  CAPTURE(table);
  for (const std::string& line : lines_of(table)) CHECK(text_width(line) <= kColumns);
  CHECK(lines_of(table).size() == 6);
  // 1,100,062,776 of 1,351,721,016, as counted in the discussion.
  CHECK(table.find("81.4 %") != std::string::npos);
}

TEST_CASE("model_memory: what can't be is refused in a sentence") {
  CHECK_THROWS_AS(model_memory("gpt5", Grid()), UsageError);
  CHECK_THROWS_WITH_AS(model_memory("gpt2", Grid().tp(2)), doctest::Contains("--tp 2 does not divide the 50257 rows"),
                       UsageError);
}
