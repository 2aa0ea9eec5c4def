// What is printed of a step.

#include <doctest/doctest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sim/classroom/step_lines.hpp"
#include "src/layout/grid.hpp"
#include "src/numerics/matrix.hpp"
#include "src/text/text.hpp"
#include "tests/ranks/reported.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::by_rank;
using muonwalk::testing::told;

namespace {

std::string joined(const std::vector<std::string>& lines, const std::string& between = "\n") {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : between) + line;
  return text;
}

Shown shown(const std::string& name, Index rows, Index cols, const std::vector<float>& values = {}) {
  Shown shown(name, {rows, cols});
  shown.values = values;
  return shown;
}

}  // namespace

TEST_CASE("rank_label: the coordinates of which there is more than one") {
  CHECK(rank_label(Grid(), 0) == "rank 0");
  CHECK(rank_label(Grid().dp(4).tp(2), 3) == "rank 3  dp 1 tp 1");
  CHECK(rank_label(Grid().pp(2), 1) == "rank 1  pp 1");
}

TEST_CASE("step_lines: what ranks say and show, in rank order, aligned, the label in a rank's first line only") {
  const StepReports reports =
      by_rank(told(shown("w", 4, 6), Said{"hello"}), told(Traffic{1, 0, 0, 0}, shown("longer_name", 10, 6)));
  const std::vector<std::string> lines = step_lines(Grid().dp(2), reports, false);
  CHECK(joined(lines) ==
        "  rank 0  dp 0   w              4 × 6    96 B\n"
        "                 hello\n"
        "  rank 1  dp 1   longer_name   10 × 6   240 B");
}

TEST_CASE("step_lines: ranks that say the same say it once, with what they share; with values each says it") {
  const auto say = [](const char* what) { return told(Said{what}); };
  const StepReports reports = by_rank(say("a"), say("a"), say("a"), say("b"));
  const Grid grid = Grid().dp(2).tp(2);
  CHECK(joined(step_lines(grid, reports, false)) ==
        "  ranks 0–2           a\n"
        "  rank 3  dp 1 tp 1   b");
  CHECK(step_lines(grid, reports, true).size() == 4);
  CHECK(joined(step_lines(grid, by_rank(say("a"), say("a"), say("b"), say("b")), false)) ==
        "  ranks 0–1  dp 0     a\n"
        "  ranks 2–3  dp 1     b");
  CHECK(joined(step_lines(grid, by_rank(say("a"), say("b"), say("a"), say("b")), false)) ==
        "  ranks 0, 2  tp 0    a\n"
        "  ranks 1, 3  tp 1    b");
}

TEST_CASE("step_lines: with values, every number is apart from its neighbour and no line leaves the screen") {
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    const Grid grid = Grid().dp(4).tp(4).pp(4);
    const Index rows = 1 + static_cast<Index>(random() % 20), cols = 1 + static_cast<Index>(random() % 30);
    std::vector<float> values;
    for (Index at = 0; at < rows * cols; ++at)
      values.push_back((random() % 2 ? -1.0f : 1.0f) * static_cast<float>(random()) * (random() % 2 ? 1e-30f : 1e-3f));
    const bool flat = random() % 2 == 0;
    Shown report = flat ? shown("w", 1, rows * cols, values) : shown("w", rows, cols, values);
    report.block.flat = flat;
    StepReports reports(64);
    reports[63].push_back(std::move(report));
    for (const std::string& line : step_lines(grid, reports, true)) {
      CAPTURE(line);
      CHECK(text_width(line) <= kColumns);
      CHECK(line.back() != ' ');
      for (std::size_t at = line.find('e'); at != std::string::npos; at = line.find('e', at + 1))
        if (at > 30 && at + 4 < line.size() && (line[at + 1] == '+' || line[at + 1] == '-'))
          CHECK(line[at + 4] == ' ');  // "1.234e-05" is followed by a blank and not by the next number
    }
  }
}

TEST_CASE("step_lines: of any matrix or flat run, what is shown and what is said to be left out add up to all of it") {
  // The number before "more" in a line, and 0 where there is none; the word is cut off with it.
  const auto left_out = [](std::string& line) {
    const std::size_t mark = line.find("…");
    if (mark == std::string::npos) return 0LL;
    const long long count = std::stoll(line.substr(mark + std::string("…").size()));
    line.erase(mark);
    return count;
  };
  for (const bool flat : {false, true})
    for (const Index rows : {1, 15, 16, 17, 18, 40})
      for (const Index cols : {1, 9, 10, 11, 12, 60}) {
        CAPTURE(flat);
        CAPTURE(rows);
        CAPTURE(cols);
        std::vector<float> values;  // each says where it belongs
        for (Index at = 0; at < rows * cols; ++at) values.push_back(static_cast<float>(at));
        Shown report = flat ? shown("w", 1, rows * cols, values) : shown("w", rows, cols, values);
        report.block.flat = flat;
        std::vector<std::string> lines = step_lines(Grid(), by_rank(told(std::move(report))), true);
        lines.erase(lines.begin(), lines.begin() + 2);  // what it is, and its digest
        long long shown_lines = 0, first = 0, more_lines = 0, all_numbers = 0;
        for (std::string& line : lines) {
          const bool of_lines = line.find("more lines") != std::string::npos;
          const long long more = left_out(line);
          std::istringstream words(line);
          long long numbers = 0;
          for (long long value = 0; !of_lines && words >> value; ++numbers, ++all_numbers)
            CHECK(value == (flat ? all_numbers : shown_lines * cols + numbers));
          if (of_lines) {
            more_lines += more;
            continue;
          }
          ++shown_lines;
          if (first == 0) first = numbers;
          if (!flat) CHECK(numbers + more == cols);
        }
        CHECK(shown_lines <= 16);
        CHECK(shown_lines + more_lines == (flat ? (rows * cols + first - 1) / first : rows));
      }
}

TEST_CASE("moved_lines: a line for each set of ranks that moved the same, and one line for many sets") {
  const auto moved = [](int sent, int messages, int received) { return told(Traffic{sent, received, messages, 0}); };
  CHECK(moved_lines(by_rank(moved(0, 0, 0), moved(0, 0, 0)), false).empty());
  CHECK(joined(moved_lines(by_rank(moved(48, 1, 48), moved(48, 1, 48)), false)) ==
        "  every rank sent 48 B in 1 message and received 48 B");
  CHECK(joined(moved_lines(by_rank(moved(48, 3, 0), moved(0, 0, 16), moved(0, 0, 16)), false)) ==
        "  rank 0 sent 48 B in 3 messages and received 0 B\n  ranks 1–2 sent 0 B in 0 messages and received 16 B");
  const StepReports three = by_rank(moved(4, 1, 48), moved(0, 0, 0), moved(20, 3, 16));
  CHECK(joined(moved_lines(three, false)) == "  every rank sent 0–20 B in 0–3 messages and received 0–48 B");
  CHECK(moved_lines(three, true).size() == 3);
  CHECK(joined(moved_lines(by_rank(told(Said{"nothing"}), moved(8, 1, 8)), false)) ==
        "  rank 1 sent 8 B in 1 message and received 8 B");  // who tells nothing of it is not in the line
}
