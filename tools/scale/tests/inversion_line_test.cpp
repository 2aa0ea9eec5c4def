// The line between cells below 1 and cells above.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tools/scale/payoff_map.hpp"

using namespace muonwalk::sim;

namespace {

using Ratios = std::vector<std::vector<std::optional<double>>>;

// Ratios around 1, some of them missing, a few of them 1.
Ratios random_ratios(std::mt19937& random) {
  std::uniform_real_distribution<double> logarithm(-2, 2);
  Ratios ratios(1 + random() % 8, std::vector<std::optional<double>>(1 + random() % 8));
  const unsigned missing = random() % 3;
  for (auto& row : ratios)
    for (auto& ratio : row) {
      if (missing > 0 && random() % (6 / missing) == 0) continue;
      ratio = random() % 32 == 0 ? 1.0 : std::exp(logarithm(random));
    }
  return ratios;
}

double middle(std::size_t cell) { return static_cast<double>(cell) + 0.5; }

// On which side of whoever goes along the segment a place lies: above 0 on the right, on a picture whose rows count
// downwards.
double side(const InversionSegment& segment, double column, double row) {
  return (segment.to.column - segment.from.column) * (row - segment.from.row) -
         (segment.to.row - segment.from.row) * (column - segment.from.column);
}

bool near(double a, double b) { return std::abs(a - b) < 1e-9; }

std::string text_of(const InversionSegment& of) {
  return std::to_string(of.from.column) + ", " + std::to_string(of.from.row) + " → " + std::to_string(of.to.column) +
         ", " + std::to_string(of.to.row);
}

}  // namespace

TEST_CASE("inversion_line: any ratios: each segment has a cell below 1 on its left and one above on its right") {
  std::size_t segments = 0;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    std::mt19937 random(seed);
    const Ratios ratios = random_ratios(random);
    for (const InversionSegment& segment : inversion_line(ratios)) {
      INFO("seed " << seed << ": " << text_of(segment));
      ++segments;
      bool below = false, above = false;
      const double column = (segment.from.column + segment.to.column) / 2;
      const double row = (segment.from.row + segment.to.row) / 2;
      for (std::size_t r = 0; r < ratios.size(); ++r)
        for (std::size_t c = 0; c < ratios[r].size(); ++c) {
          if (!ratios[r][c] || std::abs(middle(c) - column) > 1 || std::abs(middle(r) - row) > 1) continue;
          const double at = side(segment, middle(c), middle(r));
          below = below || (*ratios[r][c] < 1 && at < 1e-9);
          above = above || (*ratios[r][c] >= 1 && at > -1e-9);
        }
      CHECK(below);
      CHECK(above);
      CHECK(std::abs(segment.from.column - segment.to.column) <= 1);
      CHECK(std::abs(segment.from.row - segment.to.row) <= 1);
    }
  }
  CHECK(segments > 5000);
}

// Two neighbours on different sides, and two whole rows or columns of neighbours beside them: the line must pass
// between them, and where the logarithms say.
TEST_CASE("inversion_line: any ratios: it passes between all neighbours that differ, and between no others") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const Ratios ratios = random_ratios(random);
    const std::vector<InversionSegment> line = inversion_line(ratios);
    const auto crosses = [&](std::size_t r, std::size_t c, std::size_t r2, std::size_t c2) {
      const double a = std::log(*ratios[r][c]), b = std::log(*ratios[r2][c2]), share = a / (a - b);
      const double column = middle(c) + share * (middle(c2) - middle(c)),
                   row = middle(r) + share * (middle(r2) - middle(r));
      for (const InversionSegment& segment : line)
        for (const MapPoint& end : {segment.from, segment.to})
          if (near(end.column, column) && near(end.row, row)) return true;
      return false;
    };
    for (std::size_t r = 0; r < ratios.size(); ++r)
      for (std::size_t c = 0; c < ratios[r].size(); ++c)
        for (const auto& [r2, c2] : {std::pair{r + 1, c}, {r, c + 1}}) {
          if (r2 >= ratios.size() || c2 >= ratios[r].size() || !ratios[r][c] || !ratios[r2][c2]) continue;
          if ((*ratios[r][c] < 1) == (*ratios[r2][c2] < 1)) continue;
          INFO("seed " << seed << ", row " << r << ", column " << c << ", and row " << r2 << ", column " << c2);
          // Alone in a field of nothing there is no line: it takes a third cell, or the edge of the map.
          const bool down = r2 > r;
          const std::size_t along = down ? c : r, count = down ? ratios[r].size() : ratios.size();
          bool beside = along == 0 || along + 1 == count;
          for (const int step : {-1, 1}) {
            const std::size_t at = along + static_cast<std::size_t>(step);
            if (at >= count) continue;
            beside = beside || (down ? ratios[r][at] || ratios[r2][at] : ratios[at][c] || ratios[at][c2]);
          }
          if (beside && std::abs(std::log(*ratios[r][c]) * std::log(*ratios[r2][c2])) > 1e-12)
            CHECK(crosses(r, c, r2, c2));
        }
    std::size_t differ = 0;
    for (const auto& row : ratios)
      for (const auto& ratio : row) differ |= !ratio ? 0 : *ratio < 1 ? 1 : 2;
    if (differ != 3) CHECK(line.empty());
  }
}

TEST_CASE("inversion_line: between two cells it lies where the logarithms say, and reaches from edge to edge") {
  const std::vector<InversionSegment> line = inversion_line(Ratios{{0.5, 4.0}});
  REQUIRE(line.size() == 2);
  for (const InversionSegment& segment : line) {
    CHECK(near(segment.from.column, 0.5 + 1.0 / 3));
    CHECK(near(segment.to.column, 0.5 + 1.0 / 3));
    CHECK(segment.to.row < segment.from.row);  // upwards: what is less lies on the left
  }
  // Where opposite corners are alike, the mean says which of them belong together: those that the line does not part.
  for (const double above : {4.0, 1.5}) {
    const std::vector<InversionSegment> saddle = inversion_line(Ratios{{0.5, above}, {above, 0.5}});
    int inside = 0;
    for (const InversionSegment& segment : saddle) {
      if (segment.from.column < 0.5 || segment.from.column > 1.5 || segment.from.row < 0.5 || segment.from.row > 1.5 ||
          segment.to.column < 0.5 || segment.to.column > 1.5 || segment.to.row < 0.5 || segment.to.row > 1.5)
        continue;
      ++inside;
      CHECK((side(segment, 1, 1) > 0) == (above > 2));  // the middle is above where their product is
    }
    CHECK(inside == 2);
  }
  CHECK(inversion_line(Ratios{{0.5, std::nullopt, 4.0}}).empty());
  CHECK(inversion_line(Ratios{}).empty());
  CHECK(inversion_line(Ratios{{}}).empty());
}
