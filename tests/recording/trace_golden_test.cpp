// Traces of runs that were drawn by lot, with steps, phases, calls and messages: both files are, event by event, what
// is kept, and each arrow leaves and arrives when its message did.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/recording/trace_writers.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::Draws;
using muonwalk::testing::expect_golden;

namespace {

// In each step of each rank, calls over dp in which everybody sends to the next; now and then a message from rank to
// rank beside them.
RunTrace random_run(unsigned seed) {
  Draws draw(seed);
  RunTrace run;
  run.name = fmt::format("lesson_{}", seed);
  run.title = "Drawn by lot";
  run.grid = Grid().dp(2 + static_cast<int>(seed) % 3);
  run.precision = "bf16";
  run.backend = seed % 2 == 0 ? "gloo" : "memory";
  run.began_ns = 1000;
  run.parameters = {{"w_up", 4, 6}};
  const int ranks = run.grid.size();
  const int steps = draw(1, 3);
  for (int rank = 0; rank < ranks; ++rank) {
    RankTrace one;
    one.label = fmt::format("rank {} (dp {})", rank, rank);
    for (const char* name : {"dp", "tp", "pp"}) one.groups.push_back(run.grid.group(name, rank));
    one.names = {"start", "optimizer step 1", "optimizer step 2", "optimizer: update", "forward"};
    std::int64_t now = 2000 + draw(0, 500);
    std::int32_t number[2] = {0, 0};
    for (int step = 0; step < steps; ++step) {
      const std::size_t at = one.spans.size();
      Span of_step;
      of_step.kind = SpanKind::step;
      of_step.name = step;
      of_step.begin_ns = now;
      of_step.held_at_begin = draw(0, 9);
      one.spans.push_back(of_step);
      now += draw(0, 300);
      for (int c = 1 + (static_cast<int>(seed) + step) % 2; c >= 0; --c) {
        if (draw(0, 1) == 0) {
          Span phase;
          phase.kind = SpanKind::phase;
          phase.name = 3 + draw(0, 1);
          phase.begin_ns = now;
          phase.end_ns = now + draw(200, 4000);
          phase.held_at_begin = phase.held_at_end = draw(0, 2);
          one.spans.push_back(phase);
          now += draw(0, 150);
        }
        const bool apart = c == 1;
        Span call;
        call.kind = SpanKind::call;
        call.collective = apart ? CollectiveKind::send : CollectiveKind::all_to_all;
        call.type = ElementType::bfloat16;
        call.elements_in = draw(1, 90);
        call.elements_out = apart ? 0 : call.elements_in;
        call.bytes = 2 * call.elements_in;
        call.messages = 1;
        call.begin_ns = now;
        call.end_ns = now + draw(50, 2000);
        call.held_at_begin = draw(0, 2);
        call.held_at_end = draw(0, 2);
        one.spans.push_back(call);
        for (const SpanKind direction : {SpanKind::sent, SpanKind::received}) {
          Span message;
          message.kind = direction;
          message.collective = call.collective;
          message.peer = (rank + (direction == SpanKind::sent ? 1 : ranks - 1)) % ranks;
          message.number = number[apart ? 1 : 0];
          message.bytes = call.bytes;
          message.begin_ns = call.begin_ns + draw(0, 40);
          message.end_ns = call.end_ns + draw(-30, 3);  // also after its call, by the clock's own grain
          one.spans.push_back(message);
        }
        ++number[apart ? 1 : 0];
        now = call.end_ns + draw(0, 500);
      }
      one.spans[at].end_ns = now;
      one.spans[at].held_at_end = draw(0, 9);
      now += draw(0, 200);
    }
    run.ranks.push_back(one);
  }
  return run;
}

struct Arrow {
  std::int64_t leaves, arrives;
  int from, to;
  bool operator==(const Arrow& other) const {
    return leaves == other.leaves && arrives == other.arrives && from == other.from && to == other.to;
  }
  bool operator<(const Arrow& other) const {
    return std::tie(leaves, from, to) < std::tie(other.leaves, other.from, other.to);
  }
};

// Every message that was sent, and the one of the same number that its receiver got: by looking at all pairs.
std::vector<Arrow> expected_arrows(const RunTrace& run) {
  std::vector<Arrow> arrows;
  for (std::size_t from = 0; from < run.ranks.size(); ++from)
    for (const Span& sent : run.ranks[from].spans) {
      if (sent.kind != SpanKind::sent) continue;
      const std::vector<Span>& there = run.ranks[static_cast<std::size_t>(sent.peer)].spans;
      const Span* call = nullptr;
      for (const Span& span : there) {
        if (span.kind == SpanKind::call) call = &span;
        const bool theirs = span.kind == SpanKind::received && span.peer == static_cast<int>(from) &&
                            span.number == sent.number && span.collective == sent.collective;
        if (theirs)
          arrows.push_back({sent.begin_ns, std::min(span.end_ns, call->end_ns - 1), static_cast<int>(from), sent.peer});
      }
    }
  std::sort(arrows.begin(), arrows.end());
  return arrows;
}

std::int64_t nanoseconds(const nlohmann::json& microseconds) {
  return static_cast<std::int64_t>(microseconds.get<double>() * 1000 + 0.5);
}

}  // namespace

TEST_CASE("chrome trace: each message is an arrow, from when it left to when it arrived, inside of its call") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RunTrace run = random_run(seed);
    std::map<int, Arrow> by_id;
    const nlohmann::json trace = nlohmann::json::parse(chrome_trace_text(run));
    for (const nlohmann::json& event : trace["traceEvents"]) {
      if (event["ph"] == "s") {
        Arrow& arrow = by_id[event["id"].get<int>()];
        arrow.leaves = nanoseconds(event["ts"]) + run.began_ns;
        arrow.from = event["pid"].get<int>();
      }
      if (event["ph"] == "f") {
        Arrow& arrow = by_id[event["id"].get<int>()];
        arrow.arrives = nanoseconds(event["ts"]) + run.began_ns;
        arrow.to = event["pid"].get<int>();
        CHECK(event["bp"] == "e");
      }
    }
    std::vector<Arrow> arrows;
    for (const auto& [id, arrow] : by_id) arrows.push_back(arrow);
    std::sort(arrows.begin(), arrows.end());
    CHECK(arrows == expected_arrows(run));
  }
}

TEST_CASE("both dialects: of a run drawn by lot, every event is the one that is kept") {
  const TemporaryFolder folder;
  std::string text;
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const RunTrace run = random_run(seed);
    text += chrome_trace_text(run);
    for (int rank = 0; rank < 2; ++rank) {
      write_pytorch_dialect(folder.file("rank"), run, rank)->commit();
      text += read_text(folder.file("rank"));
    }
  }
  expect_golden("traces.txt", text);
}
