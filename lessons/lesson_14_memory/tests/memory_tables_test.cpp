// What a rank holds, as it is planned and as it is collected from ranks; the table and the chart of it.
#include <doctest/doctest.h>

#include <algorithm>

#include "lesson_14_memory.hpp"
#include "src/text/text.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace lesson_14;
using muonwalk::testing::lines_of;

namespace {

std::string line_with(const std::string& text, const std::string& what) {
  for (const std::string& line : lines_of(text))
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

RankInfo seat_of(const Grid& grid, int rank) {
  Options options;
  options.grid = grid;
  return options.rank_info(rank);
}

RankMemory planned_of(const Way& way, const Grid& grid, int rank, int capacity) {
  bucket_capacity = capacity;
  return planned(seat_of(grid, rank), way);
}

Index hidden_elements(int tp) { return (48 * 16 + 16 * 16 + 64 * 16 + 16 * 64) * 2 / tp; }

}  // namespace

TEST_CASE(
    "planned_memory: of hidden matrices 18 and 14 bytes per parameter, and 6 + 12 / D and 6 + 8 / D with ZeRO-1") {
  for (const int dp : {1, 2, 4, 8})
    for (const int tp : {1, 2, 4}) {
      const Grid grid = Grid().dp(dp).tp(tp);
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Index n = hidden_elements(tp);  // a power of two times three: no padding
        CHECK(planned_of(kWays[0], grid, rank, 1536).kept_for_hidden == 18 * n);
        CHECK(planned_of(kWays[1], grid, rank, 1536).kept_for_hidden == 14 * n);
        CHECK(planned_of(kWays[2], grid, rank, 1536).kept_for_hidden == 6 * n + 12 * n / dp);
        CHECK(planned_of(kWays[3], grid, rank, 1536).kept_for_hidden == 6 * n + 8 * n / dp);
      }
    }
}

TEST_CASE("planned_memory: Muon saves a quarter of what is sharded at best, and takes more for a moment") {
  for (const int capacity : {1, 1536, 1000000}) {
    const Grid grid = Grid().dp(4).tp(2);
    const RankMemory adamw = planned_of(kWays[2], grid, 2, capacity), muon = planned_of(kWays[3], grid, 2, capacity);
    CHECK(muon.held() < adamw.held());
    CHECK(muon.kept.at("momentum") < adamw.kept.at("first moments"));
    CHECK(muon.kept.at("second moments") < adamw.kept.at("second moments"));
    for (const char* same : {"weights", "gradients", "master weights"})
      CHECK(muon.kept.at(same) == adamw.kept.at(same));
    CHECK(muon.most() - muon.held() > adamw.most() - adamw.held());
  }
}

TEST_CASE("numbers_of: every number under a name of its own, and with_numbers puts them back") {
  const Grid grid = Grid().dp(2).tp(2);
  for (const Way& way : kWays) {
    const RankMemory memory = planned_of(way, grid, 1, 500);
    const NamedNumbers numbers = numbers_of(memory, way.name);
    CHECK(numbers.size() == memory.kept.size() + 1 + 2 * memory.phases.size());
    RankMemory other = memory;
    for (auto& [what, bytes] : other.kept) bytes = 0;
    for (PhaseMemory& phase : other.phases) phase.held = phase.most = 0;
    other.kept_for_hidden = 0;
    other = with_numbers(other, way.name, numbers);
    CHECK(other.kept == memory.kept);
    CHECK(other.phases == memory.phases);
    CHECK(other.kept_for_hidden == memory.kept_for_hidden);
    CHECK(other.held() == memory.held());
    CHECK(other.most() == memory.most());
  }
}

TEST_CASE("with_numbers: what is missing is −1, and what nobody planned is held all the same") {
  RankMemory memory;
  memory.kept = {{"weights", 2}, {"momentum", 4}};
  memory.phases = {{"DP gather", -1, 6, 9}};
  NamedNumbers counted = numbers_of(memory, "Muon");
  counted.erase("Muon, kept: weights");
  counted["Muon, kept: second moments"] = 7;
  counted["ZeRO-1 Muon, kept: second moments"] = 100;
  const RankMemory read = with_numbers(memory, "Muon", counted);
  CHECK(read.kept == std::map<std::string, Index>{{"weights", -1}, {"momentum", 4}, {"second moments", 7}});
  CHECK(read.phases == memory.phases);
}

TEST_CASE("as_matrices: a matrix of one element for each number, and none that a float32 would round") {
  std::map<std::string, RankMemory> counted;
  counted["Muon"].kept["weights"] = 1 << 24;
  const std::vector<NamedMatrix> matrices = as_matrices(counted);
  REQUIRE(matrices.size() == 2);  // and that of the hidden matrices
  CHECK(matrices[0].matrix.size() == 1);
  counted["Muon"].kept["weights"] += 1;
  CHECK_THROWS_WITH_AS(as_matrices(counted), "16777217 bytes are more than a float32 counts exactly", std::logic_error);
}

TEST_CASE("memory_table: sums, what comes on top, ratios, and bytes per parameter") {
  const std::string text = memory_table("bytes", {{"ZeRO-1", made_up(2), made_up(1)}}, {10, 5});
  CAPTURE(text);
  CHECK(line_with(text, "bytes ") == lines_of(text)[0]);
  CHECK(lines_of(text)[0].find("ZeRO-1 AdamW  ZeRO-1 Muon  ratio") != std::string::npos);
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
  for (const Way& way : {kWays[2], kWays[3]})
    for (const int dp : {1, 3, 4})
      for (const int capacity : {1, 700, 1536, 100000}) {
        const Grid grid = Grid().dp(dp).tp(2);
        const RankMemory memory = planned_of(way, grid, 0, capacity);
        const std::string text = phase_chart("rank 0", memory, layout(seat_of(grid, 0), way));
        CAPTURE(text);
        int most = 0;
        for (const std::string& line : lines_of(text)) {
          CHECK(text_width(line) <= kColumns);
          most = std::max(most, times(line, "█") + times(line, "▒"));
        }
        CHECK(most >= 35);
        CHECK(most <= 40);
        CHECK(text.find(number_text(memory.most())) != std::string::npos);
        if (way.muon) CHECK(text.find("Newton–Schulz") != std::string::npos);
      }
}
