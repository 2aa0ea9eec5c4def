// What the lesson says of the published traces is what they say, where they are there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "lessons/lesson_18_read_a_trace/compared_runs.hpp"
#include "src/text/text.hpp"
#include "tools/trace/published.hpp"
#include "tools/trace/reader.hpp"

using namespace muonwalk::sim;

TEST_CASE("every figure that the lesson has read again is one that is read in the published traces") {
  const char* given = std::getenv("MUONWALK_TRACES");
  const std::string folder = given != nullptr ? given : MUONWALK_TRACES;
  std::vector<TraceFile> traces;
  for (const char* name :
       {"muon_FULLSTEP_dp2_tp2", "adamw_FULLSTEP", "muon_FULLSTEP_dp2_tp2_async", "adamw_FULLSTEP_async"}) {
    const std::string path = fmt::format("{}/trace_{}_rank0.json", folder, name);
    if (!std::filesystem::exists(path)) {  // CTest shows the test as skipped when it finds this sentence.
      std::printf("SKIPPED: the published traces are not in %s; MUONWALK_TRACES names their folder.\n", folder.c_str());
      return;
    }
    traces.push_back(read_trace(path));
  }
  std::set<std::string> read;
  for (const PublishedClaim& claim : published_claims(traces))
    for (const PublishedFigure& figure : claim.figures)
      read.insert(fmt::format("{:.{}f}{}", figure.corrected, figure.corrected_decimals,
                              figure.unit.empty() ? "" : " " + figure.unit));
  for (const ReadAgain& each : kReadAgain) {
    CAPTURE(each.again);
    const std::string again = each.again, unit = again.substr(again.find_last_of("0123456789") + 1);
    const std::size_t both = again.find(" and ");
    if (both == std::string::npos) {
      CHECK(read.count(again) == 1);
    } else {
      CHECK(read.count(again.substr(0, both) + unit) == 1);
      CHECK(read.count(again.substr(both + 5)) == 1);
    }
  }
}
