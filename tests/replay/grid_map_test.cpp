#include "sim/replay/grid_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "src/text/text.hpp"
#include "tests/replay/well_formed_xml.hpp"

using namespace muonwalk;

namespace {

template <class Check>
void for_each_grid(const Check& check) {
  for (const int dp : {1, 2, 3, 8, 9, 64}) {
    for (const int tp : {1, 2, 5, 16, 64}) {
      for (const int pp : {1, 2, 7, 64}) {
        if (dp * tp * pp > 256) continue;
        const Grid grid = Grid().dp(dp).tp(tp).pp(pp);
        INFO(grid.text());
        check(grid);
      }
    }
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<int> numbers_in(const std::string& text) {
  std::string digits = text;
  std::replace_if(
      digits.begin(), digits.end(), [](char c) { return c < '0' || c > '9'; }, ' ');
  std::istringstream in(digits);
  std::vector<int> numbers;
  for (int number; in >> number;) numbers.push_back(number);
  return numbers;
}

int times(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("grid_map_text: dp 2 × tp 2 × pp 2, letter for letter") {
  CHECK(grid_map_text(Grid().dp(2).tp(2).pp(2)) == R"(           pp 0               pp 1
        tp 0   tp 1        tp 0   tp 1
      ┌──────┬──────┐    ┌──────┬──────┐
dp 0  │  0   │  1   │    │  4   │  5   │
      ├──────┼──────┤    ├──────┼──────┤
dp 1  │  2   │  3   │    │  6   │  7   │
      └──────┴──────┘    └──────┴──────┘

tp  4 groups of 2    {0 1} {2 3} {4 5} {6 7}
dp  4 groups of 2    {0 2} {1 3} {4 6} {5 7}
pp  4 groups of 2    {0 4} {1 5} {2 6} {3 7}
)");
}

TEST_CASE("grid_map_text: any grid: fits the columns, and every rank stands in the row of its dp, in one box") {
  for_each_grid([](const Grid& grid) {
    for (const int columns : {60, 96, 200}) {
      CAPTURE(columns);
      std::vector<int> boxes(static_cast<std::size_t>(grid.size()));
      for (const std::string& line : lines_of(grid_map_text(grid, columns))) {
        CHECK(text_width(line) <= columns);
        CHECK((line.empty() || line.back() != ' '));
        if (line.find("│") == std::string::npos) continue;
        const std::vector<int> numbers = numbers_in(line);  // dp, then the ranks
        REQUIRE(numbers.size() >= 2);
        for (std::size_t i = 1; i < numbers.size(); ++i) {
          CHECK(grid.place(numbers[i]).dp == numbers[0]);
          ++boxes[static_cast<std::size_t>(numbers[i])];
        }
      }
      CHECK(std::count(boxes.begin(), boxes.end(), 1) == grid.size());
    }
  });
}

TEST_CASE("grid_map_text: any grid: lists the ranks of every group, in order") {
  for_each_grid([](const Grid& grid) {
    const std::string text = grid_map_text(grid, 60);
    std::size_t at = 0;
    for (const char* name : {"tp", "dp", "pp"}) {
      at = text.find("\n" + std::string(name) + "  ", at);
      REQUIRE(at != std::string::npos);
      for (const Group& group : grid.groups(name)) {
        const std::size_t begin = text.find('{', at);
        at = text.find('}', begin);
        REQUIRE(at != std::string::npos);
        CHECK(numbers_in(text.substr(begin, at - begin)) == group.ranks);
      }
    }
    CHECK(text.find('{', at) == std::string::npos);
  });
}

TEST_CASE("grid_map_text: less than 60 columns are refused") {
  CHECK_THROWS_AS(grid_map_text(Grid(), 59), std::invalid_argument);
  CHECK_NOTHROW(grid_map_text(Grid(), 60));
}

TEST_CASE("grid_map_svg: any grid: well-formed, and every rank in a box of the colour of its group, three times") {
  for_each_grid([](const Grid& grid) {
    const std::string svg = grid_map_svg(grid);
    CHECK(XmlReader(svg).complaint() == "");
    CHECK(times(svg, "class=\"mw-box ") == 3 * grid.size());
    for (const char* name : {"tp", "dp", "pp"}) {
      const std::vector<Group> groups = grid.groups(name);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::string title = std::string("; ") + name + " group " + std::to_string(g) + ": ranks ";
        CHECK(times(svg, title) == static_cast<int>(groups[g].size()));
        const std::string colour = "mw-p" + std::to_string(g % 8);
        CHECK(times(svg, colour + "\"><title>rank " + std::to_string(groups[g].ranks.back()) + ":") >= 1);
      }
    }
  });
}

TEST_CASE("grid_map_svg: has a title, a description of the groups, and colours for light and dark") {
  const std::string svg = grid_map_svg(Grid().dp(2).tp(2));
  CHECK(times(svg, "<title>Grid of ranks, dp 2 × tp 2</title>") == 1);
  CHECK(times(svg, "<desc>4 ranks in a grid, dp 2 × tp 2. tp · 2 groups of 2: {0 1} {2 3}.") == 1);
  CHECK(times(svg, "@media (prefers-color-scheme:dark)") == 1);
}
