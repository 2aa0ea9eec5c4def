#include "lessons/lesson_01_grid/grid_map.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "src/text/text.hpp"

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

bool near(double a, double b) { return std::abs(a - b) < 0.02; }

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
