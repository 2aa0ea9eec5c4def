#include "tools/trace/published.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/summary.hpp"

using namespace muonwalk::sim;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

// The folder of the published traces: the environment's MUONWALK_TRACES, or the one that CMake was told.
std::string folder() {
  const char* given = std::getenv("MUONWALK_TRACES");
  return given != nullptr ? given : MUONWALK_TRACES;
}

std::string path_of(const std::string& name) { return folder() + "/trace_" + name + "_rank0.json"; }

// CTest shows the test as skipped when it finds this sentence.
bool skipped() {
  struct stat status = {};
  if (stat(path_of("muon_FULLSTEP_dp2_tp2").c_str(), &status) == 0) return false;
  std::printf("SKIPPED: the published traces are not in %s; MUONWALK_TRACES names their folder.\n", folder().c_str());
  return true;
}

std::vector<TraceFile> published_traces() {
  std::vector<TraceFile> traces;
  for (const char* name :
       {"muon_FULLSTEP_dp2_tp2", "adamw_FULLSTEP", "muon_FULLSTEP_dp2_tp2_async", "adamw_FULLSTEP_async"})
    traces.push_back(read_trace(path_of(name)));
  return traces;
}

}  // namespace

TEST_CASE("published: every figure comes out as it was published, and next to it the corrected one") {
  if (skipped()) return;
  std::map<std::string, PublishedFigure> figures;
  for (const PublishedClaim& claim : published_claims(published_traces()))
    for (const PublishedFigure& figure : claim.figures) {
      CAPTURE(claim.title);
      CAPTURE(figure.what);
      CHECK(figure.found_again());
      figures[claim.title.substr(0, 13) + "/" + figure.what] = figure;
    }
  // What was counted, not rounded: nanoseconds are exact, so these hold to the last digit.
  CHECK(figures.at("Communication/Muon, time").recounted.value() == near(139.534494, 1e-12));
  CHECK(figures.at("Communication/AdamW, time").recounted.value() == near(245.838099, 1e-12));
  CHECK(figures.at("Communication/Muon, calls").recounted == 40);
  CHECK(figures.at("Communication/AdamW, calls").recounted == 110);

  // Every corrected figure that there is, as it is printed.
  const std::map<std::string, const char*> corrected = {{"Communication/Muon, time", "68.73"},
                                                        {"Communication/Muon, calls", "10"},
                                                        {"Communication/AdamW, time", "115.78"},
                                                        {"Communication/AdamW, calls", "25"},
                                                        {"Communication/Muon / AdamW", "0.594"},
                                                        {"The same, \"pe/Muon, a step", "13.75"},
                                                        {"The same, \"pe/AdamW, a step", "23.16"},
                                                        {"The optimizer/Muon, optimizer", "248.45"},
                                                        {"The optimizer/Muon, all", "406.98"},
                                                        {"The optimizer/Muon, share", "61.0"},
                                                        {"The optimizer/AdamW, optimizer", "18.74"},
                                                        {"The optimizer/AdamW, all", "363.49"},
                                                        {"The optimizer/AdamW, share", "5.2"},
                                                        {"Forward and b/Muon", "157.85"},
                                                        {"Forward and b/AdamW", "149.40"},
                                                        {"With async_op/Muon, communication", "146.00"},
                                                        {"With async_op/AdamW, communication", "125.09"},
                                                        {"With async_op/Muon, async / sync", "2.12"},
                                                        {"With async_op/AdamW, async / sync", "1.08"},
                                                        {"With async_op/Muon, span", "366.32"},
                                                        {"With async_op/AdamW, span", "358.70"},
                                                        {"With async_op/Muon, span, async / sync", "0.90"},
                                                        {"With async_op/AdamW, span, async / sync", "0.99"},
                                                        {"With async_op/Muon, overlapped", "76.9"},
                                                        {"With async_op/AdamW, overlapped", "2.4"}};
  CHECK(figures.size() == corrected.size());
  for (const auto& [name, text] : corrected) {
    CAPTURE(name);
    REQUIRE(figures.count(name) == 1);
    CHECK(fmt::format("{:.{}f}", figures.at(name).corrected, figures.at(name).corrected_decimals) == text);
  }
}

TEST_CASE("published: the summary finds ranks, steps, types, groups and bytes in the real traces") {
  if (skipped()) return;
  const Summary muon = summarize({read_trace(path_of("muon_FULLSTEP_dp2_tp2"))});
  CHECK(muon.world_size == 4);
  CHECK(muon.backend == "nccl");
  CHECK(muon.together.steps == 5);
  REQUIRE(muon.together.collectives.size() == 2);
  CHECK(muon.together.collectives[0].type == "bfloat16");
  CHECK(muon.together.collectives[0].group == "[0, 2]");
  CHECK(muon.together.collectives[0].message_bytes == 5 * 9325720 * 2);
  CHECK(muon.together.collectives[1].message_bytes == 5 * 16777216 * 2);
  CHECK(muon.together.optimizer_device.communication_ns == muon.together.communication_ns);
  const Summary adamw = summarize({read_trace(path_of("adamw_FULLSTEP"))});
  CHECK(adamw.together.collective_calls == 25);
  CHECK(adamw.together.optimizer_device.communication_ns == 0);
  std::int64_t bytes = 0;
  for (const CollectiveLine& line : adamw.together.collectives) bytes += line.message_bytes.value();
  CHECK(bytes == std::int64_t{5} * 18184496 * 4);  // every parameter's gradient, in every step
}

TEST_CASE("published: the program prints the figures, within 100 columns, and exits with 0") {
  if (skipped()) return;
  const Outcome outcome =
      run_program({MUONWALK_TRACE_PROGRAM, "published", path_of("muon_FULLSTEP_dp2_tp2"), path_of("adamw_FULLSTEP"),
                   "--async", path_of("muon_FULLSTEP_dp2_tp2_async"), path_of("adamw_FULLSTEP_async")},
                  120);
  CHECK(outcome.exit_code == 0);
  for (const char* part : {"139.53 ms", "245.84 ms", "0.594", "271 ms", "281 ms", "294.09 ms", "377.44 ms", "76.9 %",
                           "16 of 16 published figures"})
    CHECK(outcome.out.find(part) != std::string::npos);
  const Outcome mixed = run_program(
      {MUONWALK_TRACE_PROGRAM, "summary", path_of("muon_FULLSTEP_dp2_tp2"), path_of("adamw_FULLSTEP")}, 120);
  CHECK(mixed.exit_code == 2);
  CHECK(mixed.err.find("both of rank 0") != std::string::npos);
}
