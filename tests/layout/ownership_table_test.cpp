#include "src/layout/ownership_table.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "src/text/text.hpp"
#include "tests/layout/random_layout.hpp"

using namespace muonwalk;

namespace {

// The cells of a line of the table: what stands between two or more spaces.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t gap = std::min(line.find("  ", at), line.size());
    cells.push_back(line.substr(at, gap - at));
    at = std::min(line.find_first_not_of(' ', gap), line.size());
  }
  return cells;
}

}  // namespace

TEST_CASE("ownership_table: outside a shard, in one, across a boundary and over three, letter for letter") {
  LayoutOptions options;
  options.parameter_alignment = 4;
  const Layout layout = plan_layout(
      {{"up", {5, 3}, SplitDim::none, 0}, {"wq", {3, 4}, SplitDim::none, 0}, {"norm", {1, 3}, SplitDim::none, 1}},
      Grid().dp(4), options);
  CHECK(ownership_table(layout) == R"(parameter  bucket         global range  dp 0  dp 1  dp 2  dp 3
up         0 of buffer 0  0–14          0–6   0–6   0     ·     spans 3 ranks
wq         0 of buffer 0  16–27         ·     ·     2–6   0–6   crosses one boundary
norm       0 of buffer 1  0–2           0     0     0     ·     spans 3 ranks
)");
  // It is broken as late as can be, with an empty line between the parts.
  CHECK(ownership_table(layout, 84) == ownership_table(layout));
  CHECK(ownership_table(layout, 83) == R"(parameter  bucket         global range  dp 0  dp 1  dp 2
up         0 of buffer 0  0–14          0–6   0–6   0     spans 3 ranks
wq         0 of buffer 0  16–27         ·     ·     2–6   crosses one boundary
norm       0 of buffer 1  0–2           0     0     0     spans 3 ranks

parameter  bucket         global range  dp 3
up         0 of buffer 0  0–14          ·     spans 3 ranks
wq         0 of buffer 0  16–27         0–6   crosses one boundary
norm       0 of buffer 1  0–2           ·     spans 3 ranks
)");
  CHECK(ownership_table(plan_layout({{"w", {1, 2}}}, Grid()), 1) ==
        "parameter  bucket         global range  dp 0\nw          0 of buffer 0  0–1           0–1   in one shard\n");
}

TEST_CASE("ownership_table: any layout: fits the columns, and every cell is the local range of its rank") {
  for (unsigned seed = 9000; seed < 9200; ++seed) {
    const Layout layout = RandomLayout(seed).plan();
    for (const int columns : {75, 1000}) {
      INFO("RandomLayout(" << seed << "), columns " << columns);
      std::istringstream in(ownership_table(layout, columns));
      std::vector<std::string> heading;
      int cells = 0;
      for (std::string line; std::getline(in, line);) {
        CHECK(text_width(line) <= columns);
        const std::vector<std::string> row = cells_of(line);
        if (row.empty()) continue;
        if (row[0] == "parameter") {
          heading = row;
          continue;
        }
        REQUIRE(row.size() == heading.size() + 1);
        for (const Buffer& buffer : layout.buffers) {
          for (const DistMeta& meta : buffer.parameters) {
            if (meta.name != row[0]) continue;
            CHECK(row[2] == range_text(meta.global_range));
            for (std::size_t i = 3; i < heading.size(); ++i) {
              const Range local = layout.local_range(meta, std::stoi(heading[i].substr(3)));
              CHECK(row[i] == (local.empty() ? "·" : range_text(local)));
              ++cells;
            }
          }
        }
      }
      int expected = 0;
      for (const Buffer& buffer : layout.buffers) expected += static_cast<int>(buffer.parameters.size());
      CHECK(cells == expected * layout.grid.dp());
    }
  }
}

TEST_CASE("holders_text: any grid: as many ranks as hold an element of the parameter") {
  for (const Grid& grid : {Grid(), Grid().dp(4), Grid().tp(4), Grid().dp(4).tp(2), Grid().dp(2).tp(4), Grid().dp(3)}) {
    const Layout layout = plan_layout({{"a", {8, 8}, SplitDim::rows}, {"b", {4, 4}, SplitDim::none}}, grid);
    std::string expected;
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      int holders = 0;
      for (int rank = 0; rank < grid.size(); ++rank) holders += !layout.owned_range(meta, grid.place(rank).dp).empty();
      expected += (expected.empty() ? meta.name + " " : ", " + meta.name + " ") + std::to_string(holders) +
                  (expected.empty() ? " ranks" : "");
    }
    CAPTURE(grid.text());
    CHECK(holders_text(layout, 80) == expected);
  }
}
