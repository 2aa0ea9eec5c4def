// What is printed: widths, wrapping, bars, colours.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sim/classroom/step_lines.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/layout/grid.hpp"
#include "src/numerics/matrix.hpp"
#include "src/text/text.hpp"
#include "tests/ranks/printed.hpp"
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

// Runs with a standard output that is a terminal or not.
struct OutputTo {
  int before = dup(STDOUT_FILENO);
  explicit OutputTo(int file) { dup2(file, STDOUT_FILENO); }
  ~OutputTo() {
    dup2(before, STDOUT_FILENO);
    close(before);
  }
};

Shown shown(const std::string& name, Index rows, Index cols, const std::vector<float>& values = {}) {
  Shown shown(name, {rows, cols});
  shown.values = values;
  return shown;
}

}  // namespace

TEST_CASE("text_width: one column a character, none for colours") {
  CHECK(text_width("") == 0);
  CHECK(text_width("abc") == 3);
  CHECK(text_width("4 × 6 · ██") == 10);
  CHECK(text_width("\033[1;31mbad\033[0m") == 3);
}

TEST_CASE("wrap_text: no line is wider than allowed, no word is lost, no line ends in a blank; any text, any indent") {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    const int words = 1 + static_cast<int>(random() % 80);
    for (int w = 0; w < words; ++w) {
      if (w > 0) text += " ";
      for (unsigned c = 0; c <= random() % 15; ++c) text += random() % 7 == 0 ? "×" : "x";
    }
    const int indent = static_cast<int>(random() % 12), columns = 40 + static_cast<int>(random() % 61);
    CAPTURE(text);
    std::string again;
    bool first = true;
    for (const std::string& line : wrap_text(text, indent, columns)) {
      CHECK(text_width(line) <= columns);
      CHECK(line.back() != ' ');
      if (!first)
        CHECK(line.substr(0, static_cast<std::size_t>(indent)) == std::string(static_cast<std::size_t>(indent), ' '));
      again += (first ? "" : " ") + line.substr(first ? 0 : static_cast<std::size_t>(indent));
      first = false;
    }
    CHECK(again == text);
  }
  CHECK(wrap_text("", 4).empty());
  const std::string long_word(150, 'x');  // can't be broken: it stands alone
  CHECK(wrap_text("a " + long_word + " b", 2) == std::vector<std::string>{"a", "  " + long_word, "  b"});
}

TEST_CASE("wrap_items: breaks between items only, and aligns the further lines") {
  const std::vector<std::string> items(12, "--bug wrong_dimension");
  const std::vector<std::string> lines = wrap_items("try     ", items);
  CHECK(lines.size() > 1);
  std::size_t found = 0;
  for (const std::string& line : lines) {
    CHECK(text_width(line) <= kColumns);
    CHECK(line.back() != ' ');
    for (std::size_t at = line.find(items[0]); at != std::string::npos; at = line.find(items[0], at + 1)) ++found;
  }
  CHECK(found == items.size());
  CHECK(lines[0].rfind("try     --bug", 0) == 0);
  CHECK(lines[1].rfind("        --bug", 0) == 0);
  CHECK(wrap_items("try     ", {}).empty());
}

TEST_CASE("left_and_right: fills the line to the last column, and leaves two blanks where it is too long") {
  CHECK(text_width(left_and_right("Lesson 05 · TP", "dp 1 × tp 2")) == kColumns);
  CHECK(left_and_right(std::string(99, 'x'), "y") == std::string(99, 'x') + "  y");
}

TEST_CASE("output_columns: lines are broken and aligned to the width of the output, a notebook's or the usual one") {
  std::string text;
  for (int at = 0; at < 60; ++at) text += "word" + std::to_string(at) + " ";
  for (const int columns : {88, 100, 60}) {
    set_output_columns(columns);
    CHECK(output_columns() == columns);
    CHECK(text_width(left_and_right("left", "right")) == columns);
    CHECK(text_width(aligned_lines(std::string(60, 'l'), "right")[columns < 67 ? 1 : 0]) == columns);
    for (const auto& lines :
         {wrap_text(text, 4), paragraph(text, 2, 6), wrap_items("try  ", std::vector<std::string>(40, "--bug it"))}) {
      int widest = 0;
      for (const std::string& line : lines) widest = std::max(widest, text_width(line));
      CHECK(widest <= columns);
      CHECK(widest > columns - 12);
    }
    CHECK(text_width(wrap_text(text, 0, 40)[0]) <= 40);
  }
  for (const auto& [asked, given] : {std::pair(10, 60), std::pair(1000, kColumns)}) {
    set_output_columns(asked);
    CHECK(output_columns() == given);
  }
  set_output_columns(kColumns);
}

TEST_CASE("ranks_text: all, one, a run, a few, many; never wider than its column") {
  CHECK(ranks_text({0}, 1) == "rank 0");
  CHECK(ranks_text({0, 1, 2}, 3) == "every rank");
  CHECK(ranks_text({2}, 4) == "rank 2");
  CHECK(ranks_text({0, 1, 2, 3}, 8) == "ranks 0–3");
  CHECK(ranks_text({0, 2, 5}, 8) == "ranks 0, 2, 5");
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> ranks;
    for (int rank = 0; rank < 64; ++rank)
      if (random() % 2 == 0) ranks.push_back(rank);
    if (ranks.empty()) continue;
    CAPTURE(ranks_text(ranks, 64));
    CHECK(text_width(ranks_text(ranks, 64)) <= 13);
    CHECK(ranks_text(ranks, 64).find(std::to_string(ranks[0])) != std::string::npos);
  }
}

TEST_CASE("bytes_text: thousands are set apart") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(1000) == "1,000 B");
  CHECK(bytes_text(1234567) == "1,234,567 B");
  CHECK(number_text(-999) == "-999");
  CHECK(number_text(-1234) == "-1,234");
}

TEST_CASE("bar_text: eight cells, filled where the part touches them") {
  CHECK(bar_text(0, 8, 8) == "████████");
  CHECK(bar_text(0, 4, 8) == "████····");
  CHECK(bar_text(4, 8, 8) == "····████");
  CHECK(bar_text(3, 4, 8) == "···█····");
  CHECK(bar_text(0, 1, 1000) == "█·······");  // however small, it is seen
  CHECK(bar_text(999, 1000, 1000) == "·······█");
  CHECK(bar_text(3, 3, 8) == "········");
  CHECK(bar_text(0, 2, 3) == "██████··");
  CHECK(bar_text(0, 0, 0) == "········");
}

TEST_CASE("rank_label: the coordinates of which there is more than one") {
  CHECK(rank_label(Grid(), 0) == "rank 0");
  CHECK(rank_label(Grid().dp(4).tp(2), 3) == "rank 3  dp 1 tp 1");
  CHECK(rank_label(Grid().pp(2), 1) == "rank 1  pp 1");
}

TEST_CASE("step_lines: what ranks say and show, in rank order, aligned, the label in a rank's first line only") {
  const StepReports reports =
      by_rank(told(shown("w", 4, 6), Said{"hello"}), told(Moved{1, 0, 0}, shown("longer_name", 10, 6)));
  const std::vector<std::string> lines = step_lines(Grid().dp(2), reports, false);
  CHECK(joined(lines) ==
        "  rank 0  dp 0   w              4 × 6    96 B\n"
        "                 hello\n"
        "  rank 1  dp 1   longer_name   10 × 6   240 B");
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

TEST_CASE("step_lines: a flat array shows its first values in order; what is left out is counted") {
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<float>(i));
  Shown run = shown("run", 1, 20, values);
  run.block.flat = true;
  const std::string text = joined(step_lines(Grid(), by_rank(told(std::move(run))), true));
  CAPTURE(text);
  std::size_t at = text.find("digest");
  for (int i = 0; i < 20 && at != std::string::npos; ++i) at = text.find(" " + std::to_string(i), at + 1);
  CHECK(at != std::string::npos);
  const StepReports wide = by_rank(told(shown("wide", 1, 40, std::vector<float>(40, 1.0f))));
  CHECK(joined(step_lines(Grid(), wide, true)).find(" more") != std::string::npos);
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

TEST_CASE("moved_lines: a line for each set of ranks that moved the same") {
  const auto moved = [](int sent, int messages, int received) { return told(Moved{sent, received, messages}); };
  CHECK(moved_lines(by_rank(moved(0, 0, 0), moved(0, 0, 0))).empty());
  CHECK(joined(moved_lines(by_rank(moved(48, 1, 48), moved(48, 1, 48)))) ==
        "  every rank sent 48 B in 1 message and received 48 B");
  CHECK(joined(moved_lines(by_rank(moved(48, 3, 0), moved(0, 0, 16), moved(0, 0, 16)))) ==
        "  rank 0 sent 48 B in 3 messages and received 0 B\n  ranks 1–2 sent 0 B in 0 messages and received 16 B");
}

TEST_CASE("Paint: colours on a terminal only, never with NO_COLOR, and not on a dumb terminal") {
  const int controller = posix_openpt(O_RDWR | O_NOCTTY);
  if (controller < 0 || grantpt(controller) != 0 || unlockpt(controller) != 0) {
    MESSAGE("left out: this system gives no pseudo-terminal");
    return;
  }
  const int terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  const std::string before = getenv("TERM") == nullptr ? "" : getenv("TERM");
  const auto painted = [&](int file, const char* no_color, const char* term) {
    no_color == nullptr ? unsetenv("NO_COLOR") : setenv("NO_COLOR", no_color, 1);
    term == nullptr ? unsetenv("TERM") : setenv("TERM", term, 1);
    const OutputTo output(file);
    const Paint paint;
    const std::string words = paint.good("fine");
    CHECK((paint.bad("fine") == "fine") == (words == "fine"));
    CHECK(text_width(words) == 4);
    return words != "fine";
  };
  CHECK(painted(terminal, nullptr, "xterm"));
  CHECK(painted(terminal, "", "xterm"));  // an empty NO_COLOR counts as none, as its convention says
  CHECK_FALSE(painted(terminal, "1", "xterm"));
  CHECK_FALSE(painted(terminal, "0", "xterm"));
  CHECK_FALSE(painted(terminal, nullptr, "dumb"));
  CHECK_FALSE(painted(terminal, nullptr, nullptr));
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  CHECK_FALSE(painted(pipe_ends[1], nullptr, "xterm"));
  for (int file : {pipe_ends[0], pipe_ends[1], terminal, controller}) close(file);
  unsetenv("NO_COLOR");
  before.empty() ? unsetenv("TERM") : setenv("TERM", before.c_str(), 1);
}

namespace {

// Sinks are plain functions, so what they take is kept here.
std::vector<std::string> output_lines, error_lines;

}  // namespace

TEST_CASE("print_lines_to: every line goes to the sinks and none to the streams, until they are taken away again") {
  const std::string streamed = testing::printed([] {
    print_lines_to([](const char* line) { output_lines.push_back(line); },
                   [](const char* line) { error_lines.push_back(line); });
    print_line("one");
    print_line();
    print_error_line("two");
    print_lines_to(nullptr, nullptr);
    print_line("three");
  });
  CHECK(output_lines == std::vector<std::string>{"one", ""});
  CHECK(error_lines == std::vector<std::string>{"two"});
  CHECK(streamed == "three\n");
}
