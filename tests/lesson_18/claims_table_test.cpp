// The table of published claims: without traces, and with figures that hold and that don't.
#include <doctest/doctest.h>

#include <stdexcept>

#include "sim/lesson_18/published_claims_table.hpp"
#include "sim/lesson_18/told_run.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

PublishedFigure figure(const std::string& what, double corrected) {
  PublishedFigure made;
  made.what = what;
  made.corrected = corrected;
  made.corrected_decimals = 2;
  return made;
}

// All figures that the table needs; the ratio of communication is what the caller says.
std::vector<PublishedClaim> claims_with(double ratio) {
  const auto claim = [](const std::string& title, std::vector<PublishedFigure> figures) {
    PublishedClaim made;
    made.title = title;
    made.figures = std::move(figures);
    return made;
  };
  return {claim("Communication: Muon's against AdamW's",
                {figure("Muon, calls", 10), figure("AdamW, calls", 25), figure("Muon / AdamW", ratio)}),
          claim("The same, \"per step\"", {figure("Muon, a step", 13.75), figure("AdamW, a step", 23.16)}),
          claim("The optimizer's overhead", {figure("Muon, share", 61)}),
          claim("Forward and backward", {figure("Muon", 157.85), figure("AdamW", 149.4)}),
          claim("With async_op=True",
                {figure("Muon, span, async / sync", 0.9), figure("AdamW, span, async / sync", 0.99)})};
}

std::string line_with(const std::vector<std::string>& lines, const std::string& words) {
  for (const std::string& line : lines)
    if (line.find(words) != std::string::npos) return line;
  return "";
}

}  // namespace

TEST_CASE("claims table: without the traces nothing is said about them") {
  const auto lines = published_claims_table({}, OwnRuns());
  CHECK(lines.size() == 10);
  for (const std::string& line : lines) CHECK(line.find("hold") == std::string::npos);
  CHECK(line_with(lines, "0.57").find("give --published") != std::string::npos);
  CHECK(line_with(lines, "0.57").find("can't tell") != std::string::npos);
  CHECK(line_with(lines, "sweet spot").find("can't tell") != std::string::npos);
}

TEST_CASE("claims table: the verdict follows the figure") {
  CHECK(line_with(published_claims_table(claims_with(0.594), OwnRuns()), "0.57").find("doesn't hold") !=
        std::string::npos);
  CHECK(line_with(published_claims_table(claims_with(0.574), OwnRuns()), "0.57").find("doesn't hold") ==
        std::string::npos);
  OwnRuns own;
  own.state_ratio = 0.5;
  CHECK(line_with(published_claims_table({}, own), "50 %, here").find("  holds") != std::string::npos);
  own.state_ratio = 0.6;
  CHECK(line_with(published_claims_table({}, own), "60 %, here").find("doesn't hold") != std::string::npos);
}

TEST_CASE("claims table: a figure that has another name now is a mistake of ours, and not a gap in the table") {
  std::vector<PublishedClaim> claims = claims_with(0.594);
  claims[2].figures[0].what = "renamed";
  CHECK_THROWS_AS(published_claims_table(claims, OwnRuns()), std::logic_error);
}

TEST_CASE("own runs: bytes of dp 2 × tp 2 against dp 4, and state by the copy") {
  ToldRun adamw, muon;
  adamw.optimizer = "AdamW";
  adamw.grid = Grid().dp(4);
  adamw.totals.sent_bytes = 400;
  adamw.state_elements = 80;  // four copies of 20
  muon.grid = Grid().dp(2).tp(2);
  muon.totals.sent_bytes = 100;
  muon.state_elements = 10;
  const OwnRuns own = own_runs({adamw, muon});
  REQUIRE(own.bytes_ratio);
  CHECK(*own.bytes_ratio == 0.25);
  CHECK(*own.state_ratio == 0.5);
  muon.grid = Grid().dp(4);
  CHECK(!own_runs({adamw, muon}).bytes_ratio);
  CHECK(!own_runs({}).bytes_ratio);
}
