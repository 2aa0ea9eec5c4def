// Maps: their axes, their cells, and why a cell has no figure.
#include "tools/scale/payoff_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/errors.hpp"
#include "tests/near.hpp"
#include "tools/scale/tests/made_up_maps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

PayoffMap map_of(const char* model, const Cluster& cluster, MapColumns columns, int most = 100'000) {
  return payoff_map({model_shape(model), cluster, software_of("nanotron"), columns, most});
}

bool is_power_of_two(int number) { return number > 0 && (number & (number - 1)) == 0; }

}  // namespace

TEST_CASE("payoff_map: rows are powers of two up to 100,000 GPUs, or a node times powers of two; so are columns") {
  for (const char* name : {"h100-efa", "rtx4090-100gbe"})
    for (const MapColumns columns : {MapColumns::links, MapColumns::grid}) {
      const PayoffMap map = map_of("gpt2", cluster_of(name), columns);
      CHECK(map.gpus.front() == (columns == MapColumns::links ? 8 : 2));
      for (std::size_t r = 0; r + 1 < map.gpus.size(); ++r) CHECK(is_power_of_two(map.gpus[r]));
      CHECK(map.gpus[map.gpus.size() - 2] == 65'536);
      CHECK(map.gpus.back() == 100'000);
      for (std::size_t c = 0; c < map.column_values.size(); ++c)
        CHECK(map.column_values[c] == std::ldexp(columns == MapColumns::links ? 1e9 : 1, static_cast<int>(c)));
    }
  const PayoffMap wide = map_of("gpt2", cluster_of("gb300-nvl72"), MapColumns::grid);
  CHECK(wide.gpus.back() == 100'000 / 72 * 72);
  for (const int gpus : wide.gpus) CHECK((gpus < 72 || gpus % 72 == 0));
  CHECK(map_of("gpt2", round_cluster(), MapColumns::grid, 5).gpus.back() == 5);
}

TEST_CASE("payoff_map: every cell has figures that are finite and above 0, or a word why not") {
  for (const char* name : {"h100-efa", "gb300-nvl72"})
    for (const char* model : {"gpt2", "llama-7b", "megatron-530b"})
      for (const MapColumns columns : {MapColumns::links, MapColumns::grid}) {
        const PayoffMap map = map_of(model, cluster_of(name), columns);
        INFO(map.subject() << " over " << std::string(map_columns_name(columns)));
        REQUIRE(map.cells.size() == map.gpus.size());
        for (std::size_t r = 0; r < map.cells.size(); ++r) {
          REQUIRE(map.cells[r].size() == map.column_values.size());
          for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
            const PayoffCell& cell = map.cells[r][c];
            INFO("row " << r << ", column " << c);
            CHECK(cell.gpus == map.gpus[r]);
            CHECK((columns == MapColumns::links ? cell.link_bytes_per_second : cell.tp) == map.column_values[c]);
            CHECK(cell.communication.has_value() == (cell.obstacle == nullptr));
            CHECK(cell.step.has_value() == (cell.step_obstacle == nullptr));
            if (!cell.communication) continue;
            CHECK(cell.dp * cell.tp == cell.gpus);
            for (const double figure : {cell.communication->ratio(), cell.communication->bytes_ratio()}) {
              CHECK(std::isfinite(figure));
              CHECK(figure > 0);
            }
          }
        }
      }
}

TEST_CASE("payoff_map: a cell is the comparison of its layout on its cluster") {
  const Cluster cluster = round_cluster();
  const PayoffMap grid = map_of("gpt2", cluster, MapColumns::grid, 512);
  const PayoffMap links = map_of("gpt2", cluster, MapColumns::links, 512);
  CHECK(links.tp == 4);
  int compared = 0;
  for (const auto& row : grid.cells)
    for (const PayoffCell& cell : row) {
      if (!cell.communication) continue;
      const CommunicationComparison alone = compare_communication(model_shape("gpt2"), cell.dp, cell.tp, cluster);
      CHECK(cell.communication->ratio() == alone.ratio());
      CHECK(cell.communication->extrapolated == alone.extrapolated);
      ++compared;
    }
  CHECK(compared > 20);
  // At the cluster's own speed, 32 GB/s, a map over links is the column of the other one.
  for (const auto& row : links.cells) {
    const PayoffCell& own = row[5];
    const auto same = std::find(grid.gpus.begin(), grid.gpus.end(), own.gpus) - grid.gpus.begin();
    const PayoffCell& of_grid = grid.cells[static_cast<std::size_t>(same)][2];
    CHECK(of_grid.tp == 4);
    CHECK(own.communication->muon_seconds == near(of_grid.communication->muon_seconds, 1e-12));
    CHECK(own.communication->adamw_seconds == near(of_grid.communication->adamw_seconds, 1e-12));
  }
}

TEST_CASE("payoff_map: faster links never slow a step down, and matter only where there are two nodes") {
  for (const char* name : {"h100-efa", "h100-ndr"}) {
    const PayoffMap map = map_of("llama-7b", cluster_of(name), MapColumns::links);
    for (const auto& row : map.cells)
      for (std::size_t c = 1; c < row.size(); ++c) {
        CAPTURE(row[c].gpus);
        const CommunicationComparison &slow = *row[c - 1].communication, &fast = *row[c].communication;
        CHECK(fast.muon_seconds <= slow.muon_seconds);
        CHECK(fast.adamw_seconds <= slow.adamw_seconds);
        CHECK(fast.muon_bytes == slow.muon_bytes);
        // From 1 to 2 GB/s all of it is faster; in one node nothing ever is.
        if (c == 1 || row[c].gpus == 8) CHECK((fast.adamw_seconds < slow.adamw_seconds) == (row[c].gpus > 8));
      }
  }
}

TEST_CASE("payoff_map: levels further out grow faster with the links between nodes") {
  Cluster pods = round_cluster();
  pods.levels.push_back({"pods", 0, 0.01 * kGigabyte, 0, {}, {}, "made up"});
  pods.levels[1] = {"between", 32, 32 * kGigabyte, 0, {}, {}, "made up"};
  pods.levels[0].latency_seconds = 0;
  pods.levels[0].bytes_per_second = 1e30;
  const PayoffMap map = map_of("gpt2", pods, MapColumns::links, 1024);
  // Within a node nothing costs time, so all of it takes half of the time where both levels outside are twice as fast.
  for (const std::size_t column : {0, 1, 2})
    CHECK(map.cells.back()[column].communication->adamw_seconds ==
          near(2 * map.cells.back()[column + 1].communication->adamw_seconds, 1e-6));
}

TEST_CASE("payoff_map: the gain inverts: below 1 in a node, above 1 over slow links") {
  const PayoffMap map = map_of("llama-7b", cluster_of("h100-ndr"), MapColumns::grid);
  CHECK(map.cells[1][1].communication->ratio() < 1);  // dp 2 × tp 2
  CHECK(map.cells[6][0].communication->ratio() > 1);  // dp 128
}

TEST_CASE("payoff_map: obstacles are told apart") {
  const PayoffMap grid = map_of("gpt2", round_cluster(), MapColumns::grid);  // 12 heads
  const auto at = [&grid](int gpus, int tp) -> const PayoffCell& {
    const auto row = std::find(grid.gpus.begin(), grid.gpus.end(), gpus) - grid.gpus.begin();
    return grid.cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(std::lround(std::log2(tp)))];
  };
  CHECK(at(2, 4).obstacle == &obstacles::too_few);
  CHECK(at(8, 8).obstacle == &obstacles::tp);
  CHECK(at(8, 4).obstacle == nullptr);
  CHECK(at(8, 4).step_obstacle == nullptr);
  const PayoffMap wide = map_of("llama-7b", cluster_of("gb300-nvl72"), MapColumns::grid);
  CHECK(wide.cells[7][4].gpus == 144);
  CHECK(wide.cells[7][4].obstacle == &obstacles::nodes);  // 16 in nodes of 72
  CHECK(wide.cells[6][4].obstacle == &obstacles::tp);     // 72 is not a multiple of 16
}

TEST_CASE("payoff_map: what is extrapolated is the rows with more nodes than were measured") {
  const PayoffMap map = map_of("llama-7b", round_cluster(), MapColumns::links);
  for (const auto& row : map.cells)
    for (const PayoffCell& cell : row) {
      CAPTURE(cell.gpus);
      CHECK(cell.communication->extrapolated == (cell.gpus > 16 * 8));
    }
}

TEST_CASE("payoff_map: what cannot be asked for is refused in a sentence") {
  Cluster one_level = round_cluster();
  one_level.levels.resize(1);
  CHECK_THROWS_WITH_AS(map_of("gpt2", one_level, MapColumns::links),
                       "\"round\" has one level, and no links between nodes to make a map over; take --over grid",
                       UsageError);
  CHECK_NOTHROW(map_of("gpt2", one_level, MapColumns::grid, 8));
  CHECK_THROWS_WITH_AS(map_of("gpt2", round_cluster(), MapColumns::links, 4),
                       "a map over links begins with a node of 8 GPUs, and 4 are fewer; take more, or --over grid",
                       UsageError);
  CHECK_THROWS_AS(map_of("gpt2", round_cluster(), MapColumns::grid, 1), UsageError);
  for (const MapColumns each : {MapColumns::links, MapColumns::grid})
    CHECK(parse_map_columns(map_columns_name(each)) == each);
  CHECK_THROWS_WITH_AS(parse_map_columns("nodes"), "--over nodes is not known; it is links or grid", UsageError);
}
