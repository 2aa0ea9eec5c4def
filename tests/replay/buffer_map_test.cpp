#include "sim/replay/buffer_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "src/text/text.hpp"
#include "tests/layout/random_layout.hpp"

using namespace muonwalk;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The characters between the first and the last bar of all rows, bars left out, in the order of the buffers.
std::vector<std::string> drawn_cells(const std::string& map) {
  std::vector<std::string> cells;
  for (const std::string& line : lines_of(map)) {
    const std::size_t first = line.find('|');
    if (line.find("bucket ") != 0 || first == std::string::npos) continue;
    for (std::size_t i = first; i < line.rfind('|'); ++i) {
      if (line[i] == '|') continue;
      const bool dot = line.compare(i, 2, "·") == 0;
      cells.push_back(line.substr(i, dot ? 2 : 1));
      if (dot) ++i;
    }
  }
  return cells;
}

std::string letter(int parameter) { return std::string(1, static_cast<char>('a' + parameter)); }

// As the map itself says.
Index elements_a_letter(const std::string& map) {
  const std::string words = "a letter is up to ";
  const std::size_t at = map.find(words);
  return at == std::string::npos ? 1 : std::stoll(map.substr(at + words.size()));
}

// Whose elements there are most of, counted one by one; of equals, the one that begins first, padding last.
std::string most_frequent(const Buffer& buffer, Index begin, Index end) {
  std::string most = "·";
  Index most_elements = 0;
  Index padding = end - begin;
  for (const DistMeta& meta : buffer.parameters) {
    Index elements = 0;
    for (Index i = begin; i < end; ++i) elements += meta.global_range.begin <= i && i < meta.global_range.end ? 1 : 0;
    padding -= elements;
    if (elements > most_elements) {
      most = letter(meta.parameter);
      most_elements = elements;
    }
  }
  return padding > most_elements ? "·" : most;
}

}  // namespace

TEST_CASE("buffer_map_text: small buffers, letter for letter") {
  LayoutOptions options;
  options.parameter_alignment = 4;
  options.bucket_capacity = 30;
  const Layout layout = plan_layout({{"attention.q", {4, 6}, SplitDim::columns, 0},
                                     {"attention.out", {6, 4}, SplitDim::rows, 0},
                                     {"mlp.up", {6, 3}, SplitDim::none, 0},
                                     {"mlp.down", {3, 5}, SplitDim::none, 0},
                                     {"embed", {3, 3}, SplitDim::none, 1}},
                                    Grid().dp(4).tp(2), options);
  CHECK(buffer_map_text(layout) == R"(dp 4 × tp 2 · every DP rank owns 18 of 72 elements · a letter is an element

buffer 0 of group 0 · 4 parameters · 2 buckets · 60 elements, 3 of them padding
DP rank   0           1           2           3
bucket 0 |aaaaaaaaaaa|abbbbbbbbbb|bbccccccccc|ccccccccc··|  0–43
DP rank   0    1    2    3
bucket 1 |dddd|dddd|dddd|ddd·|  44–59

   parameter      TP slice  elements    DP ranks
a  attention.q    4 × 3     0–11        0–1
b  attention.out  3 × 4     12–23       1–2
c  mlp.up         6 × 3     24–41       2–3
d  mlp.down       3 × 5     44–58       0–3
·  padding                  3 elements

buffer 1 of group 1 · 1 parameter · 1 bucket · 12 elements, 3 of them padding
DP rank   0   1   2   3
bucket 0 |eee|eee|eee|···|  0–11

   parameter  TP slice  elements    DP ranks
e  embed      3 × 3     0–8         0–2
·  padding              3 elements
)");
}

TEST_CASE("buffer_map_text: any layout: fits the columns, and letter for letter what lies in the buffer") {
  int drawn_to_the_letter = 0;
  int drawn_to_scale = 0;
  for (unsigned seed = 5000; seed < 5200; ++seed) {
    const Layout layout = RandomLayout(seed).plan();
    for (const int columns : {60, 80, 96, 100, 1000000}) {
      INFO("RandomLayout(" << seed << "), " << columns << " columns");
      const std::string map = buffer_map_text(layout, columns);
      CHECK(map == buffer_map_text(layout, columns));
      for (const std::string& line : lines_of(map)) {
        INFO(line);
        CHECK(text_width(line) <= columns);
        CHECK((line.empty() || line.back() != ' '));
      }
      const Index scale = elements_a_letter(map);
      ++(scale == 1 ? drawn_to_the_letter : drawn_to_scale);
      std::vector<std::string> expected;
      for (const Buffer& buffer : layout.buffers) {
        for (const Bucket& bucket : buffer.buckets) {
          const Index shard = bucket.range.size() / layout.grid.dp();
          for (Index begin = bucket.range.begin; begin < bucket.range.end; begin += shard) {
            for (Index i = begin; i < begin + shard; i += scale) {
              expected.push_back(most_frequent(buffer, i, std::min(i + scale, begin + shard)));
            }
          }
        }
      }
      CHECK(drawn_cells(map) == expected);
    }
  }
  CHECK(drawn_to_the_letter > 200);
  CHECK(drawn_to_scale > 50);
}

TEST_CASE("buffer_map_text: where a letter stands for several elements, what is too small to be drawn is said") {
  LayoutOptions options;
  options.parameter_alignment = 1;
  const Layout layout = plan_layout({{"large", {100, 100}, SplitDim::none, 0},
                                     {"tiny", {1, 3}, SplitDim::none, 0},
                                     {"large too", {100, 100}, SplitDim::none, 0}},
                                    Grid().dp(2), options);
  const std::string map = buffer_map_text(layout, 96);
  CHECK(map.find("a letter is up to 286 elements") != std::string::npos);
  CHECK(map.find("\nb*  tiny") != std::string::npos);
  CHECK(map.find("* too small to be drawn at this scale") != std::string::npos);
}

TEST_CASE("buffer_map_text: more DP ranks than a line holds are drawn on several lines") {
  const Layout layout = plan_layout({{"w", {64, 64}, SplitDim::none, 0}}, Grid().dp(24));
  const std::vector<std::string> lines = lines_of(buffer_map_text(layout, 60));
  int rows = 0;
  int bars = 0;
  for (const std::string& line : lines) {
    if (line.find("bucket 0 |") != 0) continue;
    ++rows;
    bars += static_cast<int>(std::count(line.begin(), line.end(), '|')) - 1;
  }
  CHECK(rows == 5);
  CHECK(bars == 24);
}

TEST_CASE("buffer_map_text: names from a file can't break the lines, however long or odd") {
  const Layout layout = plan_layout(
      {{"one\nline\x1b[31m", {2, 2}, SplitDim::none, 0}, {std::string(500, 'n'), {2, 2}, SplitDim::none, 0}},
      Grid().dp(2));
  const std::string map = buffer_map_text(layout, 80);
  CHECK(map.find("one\\nline\\x1b[31m") != std::string::npos);
  for (const std::string& line : lines_of(map)) CHECK(text_width(line) <= 80);
}

TEST_CASE("buffer_map_text: no parameters, and too few columns") {
  CHECK(buffer_map_text(plan_layout({}, Grid())) == "no parameters, so there is no buffer\n");
  CHECK_THROWS_AS(buffer_map_text(plan_layout({}, Grid()), 59), std::invalid_argument);
}

TEST_CASE("buffer_map_text: the first bars stand as far to the left as the longest label lets them") {
  for (const int buckets : {1, 9, 10, 11, 100, 101}) {
    CAPTURE(buckets);
    std::vector<Parameter> parameters;
    for (int i = 0; i < buckets; ++i) parameters.push_back({"w" + std::to_string(i), {2, 2}, SplitDim::none, 0});
    const std::string map = buffer_map_text(plan_layout(parameters, Grid().dp(2), {4, 1, 1, Ownership::buckets, {}}));
    const std::string longest = "bucket " + std::to_string(buckets - 1) + " |";
    int rows = 0;
    for (const std::string& line : lines_of(map)) {
      if (line.find("bucket ") != 0) continue;
      CHECK(line.find('|') == longest.size() - 1);
      ++rows;
    }
    CHECK(rows == buckets);
    CHECK(map.find("\n" + longest) != std::string::npos);
  }
}
