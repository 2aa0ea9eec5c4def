#include <doctest/doctest.h>

#include <algorithm>

#include "lessons/lesson_18_read_a_trace/compared_runs.hpp"
#include "lessons/lesson_18_read_a_trace/made_up_trace.hpp"
#include "sim/classroom/comparison.hpp"
#include "src/text/text.hpp"
#include "tools/trace/published.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// Reading traces by name and honestly: made-up traces with known answers, and a recorded run against its ledger.

namespace {

// One call in four events, a computation that it overlaps by 3 ms, and the optimizer on host and device. On rank 1 the
// call takes 4 ms less.
const std::vector<MadeUpEvent> kOneCall = {{0, "user_annotation", "Optimizer.step#A", 0, 0, 2},
                                           {0, "user_annotation", "nccl:all_gather", 0, 0, 1},
                                           {0, "cpu_op", "c10d::_allgather_base_", 0, 1, 1},
                                           {0, "gpu_user_annotation", "Optimizer.step#A", 7, 5, 15},
                                           {0, "gpu_user_annotation", "nccl:all_gather", 9, 5, 10},
                                           {0, "kernel", "nccl_AllGather", 9, 5, 10},
                                           {0, "kernel", "gemm", 7, 12, 8},
                                           {1, "kernel", "gemm", 7, 2, 7},
                                           {1, "kernel", "nccl_AllGather", 9, 9, 6}};

// A run of two ranks over dp: an all-gather of 8 bytes in a phase that bears its name, on a clock that begins at 100.
RunTrace small_run() {
  RunTrace run;
  run.name = "lesson_18_read_a_trace";
  run.grid = Grid().dp(2);
  run.backend = "gloo";
  run.began_ns = 100;
  for (int rank = 0; rank < 2; ++rank) {
    RankTrace of_rank;
    of_rank.label = "rank " + std::to_string(rank);
    for (const char* name : {"dp", "tp", "pp"}) of_rank.groups.push_back(run.grid.group(name, rank));
    of_rank.names = {"training step 1", "optimizer: all-gather of weights"};
    Span step, phase, call;
    step.begin_ns = 1000, step.end_ns = 9000, step.name = 0;
    phase = step;
    phase.kind = SpanKind::phase, phase.begin_ns = 2000, phase.name = 1;
    call.kind = SpanKind::call, call.begin_ns = 3000, call.end_ns = 5000;
    call.collective = CollectiveKind::all_gather, call.type = ElementType::float32;
    call.bytes = 8, call.elements_in = 2, call.elements_out = 4;
    of_rank.spans = {step, phase, call};
    of_rank.ledger.add("dp", CollectiveKind::all_gather, ElementType::float32, 1, {8, 8, 1, 1});
    run.ranks.push_back(of_rank);
  }
  return run;
}

}  // namespace

TEST_CASE("made-up trace: every figure of one call in four events, to the millisecond") {
  const NamedNumbers expected = {{"rank 0: computation", 8}, {"rank 0: communication", 10}, {"rank 0: overlap", 3},
                                 {"rank 0: optimizer", 15},  {"rank 0: waiting", 4},        {"rank 0: calls", 1},
                                 {"rank 1: computation", 7}, {"rank 1: communication", 6},  {"rank 1: overlap", 0},
                                 {"rank 1: optimizer", 0},   {"rank 1: waiting", 0},        {"rank 1: calls", 1}};
  CHECK(first_difference(in_milliseconds(summarize(made_up_trace(kOneCall))), expected) == "");
}

TEST_CASE("made-up trace: calls that run at the same time are united, and their sum is kept apart") {
  std::vector<MadeUpEvent> two = kOneCall;
  two.push_back({0, "kernel", "nccl_AllGather", 11, 10, 10});
  two.push_back({1, "kernel", "nccl_AllGather", 11, 10, 10});
  const RankSummary rank = summarize(made_up_trace(two)).ranks[0];
  CHECK(rank.communication_ns == 15'000'000);
  CHECK(rank.communication_sum_ns == 20'000'000);
}

TEST_CASE("drawn: two columns a millisecond, a row for each rank, class, name and stream") {
  const std::vector<std::string> lines = drawn({{0, "cpu_op", "a", 0, 0, 1}, {1, "kernel", "b", 7, 1, 2}});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "ms                           0");
  CHECK(lines[1] == "rank 0  host operator     a  █▌");
  CHECK(lines[2] == "rank 1  kernel, stream 7  b    ███▌");
}

TEST_CASE("by name: operator, both ranges and the kernel of one call are four events") {
  const std::vector<TraceFile> files = made_up_trace(kOneCall);
  Summary summary = summarize(files);
  const NameTally tally = tally_by_name(files[0], summary.ranks[0]);
  CHECK(tally.events == 4);
  CHECK(tally.total_ns == 22'000'000);
  CHECK(match_names(files[0], "All_Gather").all.events == 4);
  CHECK(match_names(files[0], "all-gather").of(EventClass::communication).events == 1);
  CHECK(match_names(files[0], "all_reduce").all.events == 0);
  take_names_for_calls(files, summary);
  CHECK(summary.ranks[0].collective_calls == 4);
  CHECK(summary.ranks[1].collective_calls == 1);
}

TEST_CASE("by name: computations that bear the name of a call are in neither figure, however many there are") {
  std::vector<MadeUpEvent> events = kOneCall;
  for (int more = 0; more < 5; ++more) {
    CAPTURE(more);
    const std::vector<TraceFile> files = made_up_trace(events);
    const NameTally tally = tally_by_name(files[0], summarize(files).ranks[0]);
    CHECK(match_names(files[0], "all_gather").of(EventClass::computation).events == more);
    CHECK(tally.events == 4);
    CHECK(tally.total_ns == 22'000'000);
    events.push_back({0, "kernel", "copy after all_gather", 7, 20 + 3 * more, 2});
  }
}

TEST_CASE("naive and honest: both figures stand beside each other") {
  const std::vector<TraceFile> files = made_up_trace(kOneCall);
  const std::vector<std::string> lines = two_readings(files, summarize(files));
  const auto has = [&](const std::string& words) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  for (const std::string words :
       {"4 events with their names", "1 call", "22.00 ms, these events added up", "10.00 ms, the union of the calls",
        "3.00 ms, 30.0 % of the communication", "2.00 of 2.00 ms, 100.0 %, on the host", "15.00 of 15.00 ms, 100.0 %",
        "4.00 ms, until"}) {
    CAPTURE(words);
    CHECK(has(words));
  }
  CHECK(two_readings({}, Summary()).empty());
}

TEST_CASE("a recorded run: the calls and bytes of its trace are those of its ledger") {
  RunTrace run = small_run();
  const TraceFile file = written_and_read(run);
  const Summary summary = summarize({file});
  const NamedNumbers expected = {{"rank 0, all_gather of float32 in [0, 1]: bytes", 8},
                                 {"rank 0, all_gather of float32 in [0, 1]: calls", 1},
                                 {"rank 1, all_gather of float32 in [0, 1]: bytes", 8},
                                 {"rank 1, all_gather of float32 in [0, 1]: calls", 1}};
  CHECK(first_difference(ledger_counts(run), expected) == "");
  CHECK(first_difference(call_counts(summary), expected) == "");
  const ComparedRun totals = compared_run("AdamW", Grid().dp(2), file, summary, 0);
  CHECK(totals.calls == 2);
  CHECK(totals.events_by_name == 4);  // on each rank the phase and the call; the slices of computation are left out
  CHECK(totals.sent_bytes == 16);

  run.ranks[1].spans.pop_back();  // a call that the trace lacks
  CHECK(first_difference(call_counts(summarize({written_and_read(run)})), ledger_counts(run)) ==
        "rank 1, all_gather of float32 in [0, 1]: bytes: not read, should be 8");
}

TEST_CASE("named numbers: a number that differs, is missing or is too many is named") {
  const NamedNumbers two = {{"a", 1}, {"b", 2000}};
  CHECK(first_difference(two, two) == "");
  CHECK(first_difference({{"a", 1}, {"b", 1}}, two) == "b: read 1, should be 2,000");
  CHECK(first_difference({{"b", 2000}}, two) == "a: not read, should be 1");
  CHECK(first_difference({{"a", 1}, {"b", 2000}, {"c", 0}}, two) == "c: read 0, should not be there");
}

// The table of published claims: without traces, and with figures that hold and that don't.

namespace {

std::string line_with(const std::vector<std::string>& lines, const std::string& words) {
  for (const std::string& line : lines)
    if (line.find(words) != std::string::npos) return line;
  return "";
}

}  // namespace

TEST_CASE("claims table: what was published, what we have read, by which rule, and where it comes from") {
  const auto lines = published_claims_table({});
  for (const ReadAgain& each : kReadAgain) {
    const std::string line = line_with(lines, each.words);
    CAPTURE(line);
    CHECK(line.find(each.published) != std::string::npos);
    CHECK(line.find(each.again) != std::string::npos);
    CHECK(line.find("doesn't hold") != std::string::npos);
  }
  CHECK(line_with(lines, "sweet spot").find("can't tell") != std::string::npos);
  CHECK(line_with(lines, "state per weight").find("can't tell") != std::string::npos);
  CHECK(lines.size() == 1 + 2 * 8 + 3);  // a rule below each of eight claims, and the source
  for (std::size_t i = 2; i < 17; i += 2) CHECK(lines[i].rfind("    ", 0) == 0);
  CHECK(line_with(lines, "Jen Wei").find("2025") != std::string::npos);
  CHECK(lines.back().find("https://huggingface.co/datasets/bird-of-paradise/") != std::string::npos);
  for (const std::string& line : lines) CHECK(text_width(line) <= 100);
}

TEST_CASE("claims table: the verdict follows the figure") {
  CHECK_FALSE(ReadAgain{"", "0.57", "0.594", 0.005, ""}.holds());
  CHECK(ReadAgain{"", "0.57", "0.574", 0.005, ""}.holds());
  CHECK_FALSE(ReadAgain{"", "40 and 110", "39 and 110", 0.5, ""}.holds());
  OwnRuns own;
  own.state_ratio = 0.5;
  CHECK(line_with(published_claims_table(own), "state per weight").find("  holds") != std::string::npos);
  own.state_ratio = 0.6;
  CHECK(line_with(published_claims_table(own), "state per weight").find("doesn't hold") != std::string::npos);
  own.bytes_ratio = 0.7222;
  own.equal_grid_ratio = 1.5;
  CHECK(line_with(published_claims_table(own), "0.722 × on these grids, 1.500 × on dp 4") != "");
}

TEST_CASE("own runs: bytes of dp 2 × tp 2 against dp 4, and state by the copy") {
  ComparedRun adamw, muon;
  adamw.optimizer = "AdamW";
  muon.optimizer = "Muon";
  adamw.grid = Grid().dp(4);
  adamw.sent_bytes = 400;
  adamw.state_elements = 80;  // four copies of 20
  muon.grid = Grid().dp(2).tp(2);
  muon.sent_bytes = 100;
  muon.state_elements = 10;
  ComparedRun equal = muon;
  equal.grid = Grid().dp(4);
  equal.sent_bytes = 600;
  const OwnRuns own = own_runs({adamw, equal, muon});
  REQUIRE(own.bytes_ratio);
  CHECK(*own.bytes_ratio == 0.25);
  CHECK(*own.state_ratio == 0.5);
  CHECK(*own.equal_grid_ratio == 1.5);
  CHECK(!own_runs({adamw, muon}).equal_grid_ratio);
  muon.grid = Grid().dp(4);
  CHECK(!own_runs({adamw, muon}).bytes_ratio);
  CHECK(!own_runs({}).bytes_ratio);
}
