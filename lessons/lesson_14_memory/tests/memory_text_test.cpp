// The table and the chart, and the picture of the same numbers.
#include "lessons/lesson_14_memory/memory_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "lessons/lesson_14_memory/memory_picture.hpp"
#include "lessons/lesson_14_memory/way.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

std::vector<std::string> text_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string line_with(const std::string& text, const std::string& what) {
  for (const std::string& line : text_lines(text))
    if (line.find(what) != std::string::npos) return line;
  return "";
}

int times(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

RankMemory made_up(Index moments) {
  RankMemory memory;
  memory.kept = {{"weights", 20}, {"gradients", 40}, {"master weights", 40}, {"first moments", 40}};
  if (moments == 2) memory.kept["second moments"] = 40;
  memory.kept_for_hidden = 50;
  memory.phases = {{"a", -1, memory.held(), memory.held() + 20}, {"b", -1, memory.held(), memory.held()}};
  return memory;
}

}  // namespace

TEST_CASE("memory_table: sums, what comes on top, ratios, and bytes per parameter") {
  const std::string text = memory_table("bytes", {{"ZeRO-1", made_up(2), made_up(1)}}, {10, 5});
  CAPTURE(text);
  CHECK(line_with(text, "bytes ") == text_lines(text)[0]);
  CHECK(text_lines(text)[0].find("ZeRO-1 AdamW  ZeRO-1 Muon  ratio") != std::string::npos);
  const auto ends = [&](const char* what, const std::string& end) {
    const std::string line = line_with(text, what);
    return line.size() >= end.size() && line.compare(line.size() - end.size(), end.size(), end) == 0;
  };
  CHECK(ends("weights, bfloat16", " 1.00"));
  CHECK(ends("second moments", " 0.00"));
  CHECK(ends("between two steps", " 0.78"));
  CHECK(line_with(text, "between two steps").find("180") != std::string::npos);
  CHECK(ends("for a moment", " 1.00"));
  CHECK(ends("at most", " 0.80"));
  CHECK(line_with(text, "per parameter, ").find("18.00") != std::string::npos);
  CHECK(line_with(text, "per parameter, ").find("14.00") != std::string::npos);
  CHECK(line_with(text, "hidden").find("10.00") != std::string::npos);
  // In larger units, to the nearest.
  CHECK(line_with(memory_table("", {{"", made_up(2), made_up(1)}}, {10, 5}, 100), "between").find(" 2 ") !=
        std::string::npos);
}

TEST_CASE("memory_table: nothing at all is shown as that, and no ratio is made of it") {
  const std::string text = memory_table("bytes", {{"", {}, {}}}, {});
  CHECK(times(text, "–") == 12);
  CHECK(text.find("nan") == std::string::npos);
}

TEST_CASE("phase_chart: any grid and bucket size: bars that fill what is most, and 100 columns at most") {
  const std::vector<Parameter> parameters = memory_model();
  for (const bool muon : {false, true})
    for (const int dp : {1, 3, 4})
      for (const Index capacity : {Index{1}, Index{700}, Index{1536}, Index{100000}}) {
        const Grid grid = Grid().dp(dp).tp(2);
        const Way way{"x", muon, true};
        const Layout layout = layout_of(way, parameters, grid, capacity);
        const RankMemory memory =
            memory_of(way, optimizer_of(way, parameters, MuonSettings()), layout, grid, grid.place(0));
        const std::string text = phase_chart("rank 0", memory, layout);
        CAPTURE(text);
        int most = 0;
        const std::vector<std::string> lines = text_lines(text);
        for (std::size_t i = 0; i < lines.size(); ++i) {
          CHECK(text_width(lines[i]) <= kColumns);
          CHECK(lines[i].back() != ' ');
          most = std::max(most, times(lines[i], "█") + times(lines[i], "▒"));
        }
        CHECK(most >= 35);
        CHECK(most <= 40);
        CHECK(text.find(number_text(memory.most())) != std::string::npos);
        if (muon) CHECK(text.find("Newton–Schulz") != std::string::npos);
      }
}

TEST_CASE("memory_picture: a bar for each kind and phase, and the most in words") {
  const std::string svg = memory_picture(3, {{"ZeRO-1 AdamW", made_up(2)}, {"<Muon>", made_up(1)}}, Layout());
  // Legend and paper; then five and four kinds and a moment, for two phases each.
  CHECK(times(svg, "<rect ") == 1 + 7 + 2 * 6 + 2 * 5);
  CHECK(svg.find("rank 3") != std::string::npos);
  CHECK(svg.find("at most 200 B, in a") != std::string::npos);
  CHECK(svg.find("&lt;Muon&gt;") != std::string::npos);
  CHECK(svg.find("<Muon>") == std::string::npos);
}
