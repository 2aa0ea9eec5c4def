// The tables of lesson 15 as functions, and assignments compared with all that there could be.
#include "lessons/lesson_15_sharding_layouts/layout_tables.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/errors.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::lines_of;

namespace {

// The words of a line that stand two or more spaces apart.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at < line.size();) {
    at = line.find_first_not_of(' ', at);
    if (at == std::string::npos) break;
    const std::size_t end = std::min(line.find("  ", at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end;
  }
  return cells;
}

double work_of(Shape shape) {
  const double m = double(std::min(shape.rows, shape.cols)), n = double(std::max(shape.rows, shape.cols));
  return 20 * m * m * n + 10 * m * m * m;
}

// a of 16 elements, b of 16, c of 64, as in sharding_test.cpp: with dp 3 the buffer is cut at 32 and at 64.
const std::vector<Parameter> kThree = {{"a", {4, 4}}, {"b", {2, 8}}, {"c", {8, 8}}};

NamedLayout three(const std::string& name, Ownership ownership, std::vector<int> owners = {}) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.ownership = ownership;
  options.owners = std::move(owners);
  return {name, plan_layout(kThree, Grid().dp(3), options)};
}

std::vector<int> in_turn(const std::vector<Parameter>& parameters, const Grid& grid) {
  return round_robin_owners(parameters, grid.dp());
}
std::vector<int> by_work(const std::vector<Parameter>& parameters, const Grid& grid) {
  return balanced_owners(parameters, grid.dp());
}
const std::vector<OwnershipPolicy> kWays = {{"per bucket", Ownership::buckets},
                                            {"contiguous", Ownership::buffer},
                                            {"in turn", Ownership::matrices, in_turn},
                                            {"by work", Ownership::matrices, by_work}};

}  // namespace

TEST_CASE("assignments: no choice of owners is below the bound, and largest first by work is within 4/3 of the best") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    RandomLayout random(seed);
    if (random.parameters.size() > 6) random.parameters.resize(6);
    const int dp = 1 + static_cast<int>(seed % 3);
    random.grid = Grid().dp(dp).tp(random.grid.tp());
    INFO("RandomLayout(" << seed << ") on dp " << dp);
    const auto slowdown = [&](const std::vector<int>& owners) {
      std::vector<double> load(static_cast<std::size_t>(dp));
      double sum = 0;
      for (std::size_t p = 0; p < owners.size(); ++p) {
        load[static_cast<std::size_t>(owners[p])] += work_of(random.parameters[p].shape);
        sum += work_of(random.parameters[p].shape);
      }
      return *std::max_element(load.begin(), load.end()) * dp / sum;
    };
    double best = dp;
    int choices = 1;
    for (std::size_t p = 0; p < random.parameters.size(); ++p) choices *= dp;
    for (int choice = 0; choice < choices; ++choice) {
      std::vector<int> owners;
      for (int rest = choice; owners.size() < random.parameters.size(); rest /= dp) owners.push_back(rest % dp);
      best = std::min(best, slowdown(owners));
    }
    random.options.ownership = Ownership::matrices;
    random.options.owners = balanced_owners(random.parameters, dp);
    const Layout layout = random.plan();
    // The last line is the least that whole matrices allow.
    const double least =
        std::stod(cells_of(lines_of(sharding_table({{"whole", layout}}, Precision::fp32)).back()).back());
    CHECK(least <= best + 0.005);
    CHECK(least >= 1);
    CHECK(sharding_of(layout).slowdown() == near(slowdown(random.options.owners), 1e-5));
    CHECK(slowdown(random.options.owners) <= best * 4 / 3 * (1 + 1e-12));
  }
}

TEST_CASE("owners_table: a line per matrix, with its owners in each layout") {
  const std::string table =
      owners_table({three("contiguous", Ownership::buffer), three("dealt", Ownership::matrices, {2, 0, 1})});
  CHECK(table ==
        "matrix  shape  TP cuts  elements  kFLOP  contiguous  dealt\n"
        "a       4 × 4  none           16      2           0      2\n"
        "b       2 × 8  none           16      1           0      0\n"
        "c       8 × 8  none           64     15         1–2      1");
  CHECK_THROWS_WITH_AS(owners_table({}), "a table of layouts needs at least one of them", std::invalid_argument);
}

TEST_CASE("sharding_table: the figures of three matrices, worked out by hand") {
  // Work: a 1,920, b 720, c 15,360; together 18,000, of which a third is 6,000.
  const std::vector<std::string> lines = lines_of(sharding_table(
      {three("contiguous", Ownership::buffer), three("dealt", Ownership::matrices, {2, 0, 1})}, Precision::fp32));
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "3 matrices on dp 3 × tp 1: 96 elements in TP slices, 18.0 kFLOP of Newton–Schulz");
  using Cells = std::vector<std::string>;
  CHECK(cells_of(lines[1]) == Cells{"cut", "gathers", "× the work", "most elements", "most work", "slowest"});
  // c twice, on ranks 1 and 2, which get 32 elements each: 33,360 in all, of which the most are 15,360.
  CHECK(cells_of(lines[2]) == Cells{"contiguous", "1 of 3", "128 B", "1.85", "1.00", "1.38", "2.56"});
  CHECK(cells_of(lines[3]) == Cells{"dealt", "0 of 3", "0 B", "1.00", "2.00", "2.56", "2.56"});
  CHECK(cells_of(lines[4]) == Cells{"all cut by all", "3 of 3", "256 B", "3.00", "1.00", "1.00", "3.00"});
  CHECK(cells_of(lines[5]) == Cells{"whole, at best", "0 of 3", "0 B", "1.00", "–", "2.56", "2.56"});
  CHECK(cells_of(lines_of(sharding_table({three("x", Ownership::buffer)}, Precision::bf16))[2])[2] == "64 B");
  // The figures are of one DP group, so TP changes none of them where it cuts nothing.
  const Layout with_tp = plan_layout(kThree, Grid().dp(3).tp(2), {0, 1, 1, Ownership::buffer, {}});
  CHECK(lines_of(sharding_table({{"contiguous", with_tp}}, Precision::fp32))[2] ==
        lines_of(sharding_table({three("contiguous", Ownership::buffer)}, Precision::fp32))[2]);
  CHECK_THROWS_WITH_AS(sharding_table({}, Precision::fp32), "a table of layouts needs at least one of them",
                       std::invalid_argument);
}

TEST_CASE("lay_out: each way has its ownership and its owners; layouts_of: all of them, by name") {
  const Grid grid = Grid().dp(3);
  const std::vector<NamedLayout> layouts = layouts_of(kThree, grid, kWays, 20);
  REQUIRE(layouts.size() == 4);
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    CHECK(layouts[way].first == kWays[way].name);
    CHECK(layouts[way].second.options.ownership == kWays[way].ownership);
    CHECK(layouts[way].second.options.bucket_capacity == 20);
    CHECK(layouts[way].second.options.parameter_alignment == 64);
    CHECK(layouts[way].second.text() == lay_out(kThree, grid, kWays[way], 20).text());
  }
  CHECK(layouts[0].second.options.owners.empty());
  CHECK(layouts[2].second.options.owners == std::vector<int>{0, 1, 2});
  CHECK(layouts[3].second.options.owners == std::vector<int>{1, 2, 0});
}

TEST_CASE("tables: of any parameters, they have a line per matrix or layout; published models fit into 100 columns") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const RandomLayout random(seed);
    INFO("RandomLayout(" << seed << ")");
    const std::vector<NamedLayout> all =
        layouts_of(random.parameters, random.grid, kWays, random.options.bucket_capacity);
    CHECK(lines_of(owners_table(all)).size() == random.parameters.size() + 1);
    CHECK(lines_of(sharding_table(all, Precision::fp32)).size() == 2 + kWays.size() + 2);
  }
  for (const char* model : {"gpt2", "llama-7b", "moonlight-16b"})
    for (const Grid& grid : {Grid(), Grid().dp(64), Grid().dp(512).tp(8)}) {
      const auto layouts = layouts_of(with_whole_experts(model), grid, kWays, megatron_bucket(grid.dp()));
      for (const std::string& line : lines_of(sharding_table(layouts, Precision::fp32)))
        CHECK(text_width(line) <= kColumns);
    }
}

TEST_CASE("Megatron-LM's bucket: 40 million elements, or a million for each of more than 40 ranks") {
  CHECK(megatron_bucket(1) == 40000000);
  CHECK(megatron_bucket(40) == 40000000);
  CHECK(megatron_bucket(41) == 41000000);
  CHECK(megatron_bucket(4096) == 4096000000);
}

TEST_CASE("tp_slices and with_whole_experts: what a rank keeps, and experts that TP leaves alone") {
  const std::vector<Parameter> slices = tp_slices(expert_layers(), 2);
  REQUIRE(slices.size() == 14);
  CHECK(slices[0].shape == Shape{16, 32});
  CHECK(slices[3].shape == Shape{32, 16});
  CHECK(slices[5].shape == Shape{16, 32});
  for (const Parameter& each : slices) CHECK(each.tp_split_dim == SplitDim::none);
  CHECK_THROWS_AS(tp_slices(expert_layers(), 3), UsageError);

  const std::vector<Parameter> cut = model_parameters("moonlight-16b"), whole = with_whole_experts("moonlight-16b");
  REQUIRE(cut.size() == whole.size());
  int left_whole = 0;
  for (std::size_t p = 0; p < cut.size(); ++p) {
    CHECK(cut[p].name == whole[p].name);
    CHECK(cut[p].shape == whole[p].shape);
    const bool expert = cut[p].name.find(".expert") != std::string::npos;
    CHECK(whole[p].tp_split_dim == (expert ? SplitDim::none : cut[p].tp_split_dim));
    left_whole += expert;
  }
  CHECK(left_whole == 26 * 64 * 3);
}

TEST_CASE("with_dealt_experts: both lists make up the model, an EP rank's share of the experts taken ep times") {
  const std::vector<Parameter> all = with_whole_experts("moonlight-16b");
  for (const int ep : {1, 2, 8, 64}) {
    CAPTURE(ep);
    const auto [others, experts] = with_dealt_experts("moonlight-16b", ep, 64);
    CHECK(others.size() + experts.size() * ep == all.size());
    CHECK(experts.size() * ep == 26 * 64 * 3);
    for (const Parameter& each : others) CHECK(each.name.find(".expert") == std::string::npos);
  }
  CHECK_THROWS_WITH_AS(with_dealt_experts("gpt2", 8, 64),
                       "--ep 8 deals out experts, and gpt2 has none; try --model qwen3-30b", UsageError);
  CHECK_THROWS_AS(with_dealt_experts("moonlight-16b", 3, 66), UsageError);
  CHECK_THROWS_AS(with_dealt_experts("moonlight-16b", 0, 64), UsageError);
  CHECK_THROWS_AS(with_dealt_experts("moonlight-16b", 8, 12), UsageError);
}

TEST_CASE("sharding_table with experts: ep 1 changes nothing but their own buckets, and ep dp cuts none of them") {
  const auto table = [](int dp, int ep) {
    const auto [others, experts] = with_dealt_experts("moonlight-16b", ep, dp);
    const Grid sharers = Grid().dp(dp / ep);
    return lines_of(sharding_table(layouts_of(others, Grid().dp(dp), kWays, megatron_bucket(dp)), Precision::fp32,
                                   layouts_of(experts, sharers, kWays, megatron_bucket(sharers.dp()))));
  };
  const auto whole = lines_of(sharding_table(
      layouts_of(with_whole_experts("moonlight-16b"), Grid().dp(64), kWays, megatron_bucket(64)), Precision::fp32));
  const auto one = table(64, 1), eight = table(64, 8), own = table(64, 64);
  const std::size_t of_cuts = 1, all_by_all = 2 + kWays.size();
  CHECK(one[0].find("on dp 64 × tp 1, ep 1: ") != std::string::npos);
  CHECK(cells_of(one[all_by_all]) == cells_of(whole[all_by_all]));
  for (const std::string& line : eight) CHECK(text_width(line) <= kColumns);
  const auto cut = [&](const std::vector<std::string>& lines, std::size_t line) {
    std::string digits;
    for (const char letter : cells_of(lines[line])[of_cuts].substr(0, cells_of(lines[line])[of_cuts].find(" of ")))
      if (letter != ',') digits += letter;
    return std::stoi(digits);
  };
  CHECK(cut(eight, 2) < cut(one, 2));
  const int no_experts = cut(own, all_by_all);  // all but the experts, which one rank has alone
  CHECK(no_experts == static_cast<int>(with_dealt_experts("moonlight-16b", 64, 64).first.size()));
  CHECK(cut(eight, all_by_all) == cut(one, all_by_all));
}

TEST_CASE("the toy: distinct names, and sizes of TP from 1 to 16") {
  std::set<std::string> names;
  for (const Parameter& each : expert_layers()) names.insert(each.name);
  CHECK(names.size() == 14);
  for (const int tp : {1, 2, 4, 8, 16}) CHECK_NOTHROW(tp_slices(expert_layers(), tp));
}
