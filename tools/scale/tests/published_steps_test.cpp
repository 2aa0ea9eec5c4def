// What was published of single steps, beside what the model says: times stay where they are.
#include "tools/scale/published_steps.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "src/text/text.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

TEST_CASE("published steps: Megatron-LM's eight, within a quarter") {
  const std::vector<PublishedStep> rows = megatron_steps();
  const double published[] = {1.42, 1.10, 18.13, 13.75, 49.05, 37.83, 94.42, 71.49};
  REQUIRE(rows.size() == 8);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].what);
    CAPTURE(rows[i].predicted);
    CHECK(rows[i].published == published[i]);
    CHECK(std::abs(rows[i].error()) < 0.25);
  }
  // Full recomputation takes longer than selective, on every model: a quarter to two fifths.
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    CHECK(rows[i].predicted > 1.2 * rows[i + 1].predicted);
    CHECK(rows[i].predicted < 1.45 * rows[i + 1].predicted);
  }
}

TEST_CASE("published steps: what Muon adds, in percent, stays where it is") {
  const std::vector<PublishedStep> rows = muon_steps();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].published == 2.1);
  CHECK(rows[0].predicted == near(3.46, 0.03));
  CHECK(rows[1].published == 3.9);
  CHECK(rows[1].predicted == near(3.89, 0.03));
  // No product was measured on a GB300, so there is a band, which has room for one of the two.
  for (const PublishedStep& row : rows) {
    CHECK(row.low < row.predicted);
    CHECK(row.predicted < row.high);
    CHECK(row.extrapolated);
  }
  CHECK(rows[0].published < rows[0].low);
  CHECK(rows[1].low < rows[1].published);
}

TEST_CASE("published steps: the text keeps to 100 columns and has every row") {
  const std::string text = published_steps_text();
  for (const std::string& line : testing::lines_of(text)) {
    CAPTURE(line);
    CHECK(text_width(line) <= kColumns);
    CHECK((line.empty() || line.back() != ' '));
  }
  for (const auto& table : {megatron_steps(), muon_steps()})
    for (const PublishedStep& row : table) CHECK_MESSAGE(text.find(row.what) != std::string::npos, row.what);
  for (const char* nothing : {"nan", "inf", "-0.0 %"})
    CHECK_MESSAGE(text.find(nothing) == std::string::npos, nothing << " in\n" << text);
}
