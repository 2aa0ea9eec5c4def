// What lesson 19 reads out of its own trace, for runs that were made by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "src/text/text.hpp"
#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// A trace of a rank, written entry by entry.
class TraceByHand {
 public:
  TraceByHand& step(const std::string& title, std::int64_t begin, std::int64_t end) {
    return add(SpanKind::step, title, begin, end);
  }
  TraceByHand& phase(const std::string& name, std::int64_t begin, std::int64_t end) {
    return add(SpanKind::phase, name, begin, end);
  }
  TraceByHand& call(const std::string& group, CollectiveKind kind, std::int64_t begin, std::int64_t end) {
    trace.groups = {{"tp", {0}}, {"pp", {0, 1}}, {"first and last stage", {0, 1}}};
    add(SpanKind::call, "", begin, end);
    Span& span = trace.spans.back();
    span.name = -1;
    span.collective = kind;
    while (trace.groups[span.group].name != group) ++span.group;
    return *this;
  }
  // A played stage, `shift` nanoseconds later, with a phase between its moves as real stages have.
  TraceByHand& stage(const PipelineTimeline& played, std::size_t stage, std::int64_t shift) {
    std::int64_t since = shift;
    for (const PipelineSpan& span : played.stages[stage]) {
      if (shift + span.time.begin > since) phase("wait for a neighbour", since, shift + span.time.begin);
      phase(move_name(span.move), shift + span.time.begin, shift + span.time.end);
      since = shift + span.time.end;
    }
    return phase("optimizer", since, since + 5);
  }
  RankTrace trace;

 private:
  TraceByHand& add(SpanKind kind, const std::string& name, std::int64_t begin, std::int64_t end) {
    Span span;
    span.kind = kind;
    span.begin_ns = begin;
    span.end_ns = end;
    span.name =
        static_cast<std::int32_t>(std::find(trace.names.begin(), trace.names.end(), name) - trace.names.begin());
    if (static_cast<std::size_t>(span.name) == trace.names.size()) trace.names.push_back(name);
    trace.spans.push_back(span);
    return *this;
  }
};

constexpr std::int64_t kLater = 1000000;  // when the second step begins
const PipelineTimeline& first_played() {
  static const auto played = play_pipeline(PipelineSchedule::gpipe, 4, {{10, 20, 15}, {30, 40, 25}, 3});
  return played;
}
const PipelineTimeline& second_played() {
  static const auto played = play_pipeline(PipelineSchedule::one_f_one_b, 4, equal_times(3, 10, 20));
  return played;
}

// dp 2 × tp 1 × pp 3: two steps with pipelines, and others around them.
RunTrace run_by_hand() {
  RunTrace run;
  run.grid = Grid().dp(2).pp(3);
  for (int rank = 0; rank < run.grid.size(); ++rank) {
    const Place place = run.grid.place(rank);
    const auto stage = static_cast<std::size_t>(place.pp);
    TraceByHand hand;
    hand.step("prepare", 0, 50).phase("read", 10, 20);
    hand.step("forward of micro-batch 9", 60, 70);  // the title of a step is not a move
    // The second DP rank is slower, but not the one that stands for its stage.
    hand.step("train, gpipe", 80, 900).stage(first_played(), stage, 100 + 7 * place.dp);
    hand.step("train, 1f1b", kLater, kLater + 900).stage(second_played(), stage, kLater + 11);
    Span call;
    call.kind = SpanKind::call;
    call.begin_ns = call.end_ns = kLater + 800;
    hand.trace.spans.push_back(call);
    run.ranks.push_back(hand.trace);
  }
  return run;
}

void require_same(const PipelineTimeline& measured, const PipelineTimeline& played) {
  REQUIRE(measured.clock == PipelineClock::nanoseconds);
  REQUIRE(measured.stages.size() == played.stages.size());
  for (std::size_t s = 0; s < played.stages.size(); ++s) {
    REQUIRE(measured.stages[s].size() == played.stages[s].size());
    for (std::size_t i = 0; i < played.stages[s].size(); ++i) {
      REQUIRE(measured.stages[s][i].move == played.stages[s][i].move);
      REQUIRE(measured.stages[s][i].time == played.stages[s][i].time);
    }
  }
}

}  // namespace

TEST_CASE("measured timelines: the moves of every step, of the first rank of each stage, from time 0 on") {
  const auto measured = measured_timelines(run_by_hand());
  REQUIRE(measured.size() == 2);
  CHECK(measured[0].first == "train, gpipe");
  CHECK(measured[1].first == "train, 1f1b");
  require_same(measured[0].second, first_played());
  require_same(measured[1].second, second_played());
  CHECK(measured[1].second.bubble(2) == near(0.5, 1e-5));
}

TEST_CASE("measured timelines: a step that is not whole on every stage is left out, and the others stay") {
  RunTrace lacks_a_move = run_by_hand();  // of the last stage: the last entries had no room
  lacks_a_move.ranks[4].spans.resize(lacks_a_move.ranks[4].spans.size() - 4);
  REQUIRE(measured_timelines(lacks_a_move).size() == 1);
  CHECK(measured_timelines(lacks_a_move)[0].first == "train, gpipe");

  RunTrace lacks_a_step = run_by_hand();
  for (Span& span : lacks_a_step.ranks[2].spans)
    if (span.begin_ns >= kLater) span.kind = SpanKind::call;
  REQUIRE(measured_timelines(lacks_a_step).size() == 1);

  // Steps of different titles are never taken for one.
  RunTrace lacks_the_first = run_by_hand();
  for (Span& span : lacks_the_first.ranks[2].spans)
    if (span.begin_ns < kLater) span.kind = SpanKind::call;
  CHECK(measured_timelines(lacks_the_first).empty());

  RunTrace without_ranks = run_by_hand();
  without_ranks.ranks.clear();
  CHECK(measured_timelines(without_ranks).empty());
  CHECK(measured_bubbles({}).empty());
}

TEST_CASE("measured timelines: calls between stages are idle time, those within one are work") {
  RunTrace run;
  run.grid = Grid().pp(2);
  TraceByHand first, last;
  first.step("train", 0, 1000);
  first.phase("forward of micro-batch 0", 100, 150).call("pp", CollectiveKind::send, 140, 145);
  // Room for two messages, the messages, work with a call of the TP group in it, and what is sent on.
  first.phase("backward of micro-batch 0", 150, 500)
      .call("pp", CollectiveKind::recv, 155, 250)
      .call("first and last stage", CollectiveKind::recv, 270, 300)
      .call("tp", CollectiveKind::all_reduce, 320, 330)
      .call("tp", CollectiveKind::recv, 340, 350)
      .call("pp", CollectiveKind::wait, 400, 420)
      .call("pp", CollectiveKind::send, 420, 430);
  first.phase("optimizer", 500, 600).call("pp", CollectiveKind::wait, 510, 520);
  last.step("train", 0, 1000);
  last.phase("forward of micro-batch 0", 90, 200).call("pp", CollectiveKind::recv, 95, 160);
  last.phase("backward of micro-batch 0", 200, 300).call("pp", CollectiveKind::send, 240, 250);
  run.ranks = {first.trace, last.trace};
  const auto measured = measured_timelines(run);
  REQUIRE(measured.size() == 1);
  const PipelineTimeline& timeline = measured[0].second;  // its time 0 was at 100
  const auto times_of = [&](std::size_t stage) {
    std::vector<Interval> times;
    for (const PipelineSpan& span : timeline.stages[stage]) times.push_back(span.time);
    return times;
  };
  CHECK(times_of(0) == std::vector<Interval>{{0, 40}, {45, 50}, {200, 300}, {330, 400}});
  CHECK(times_of(1) == std::vector<Interval>{{60, 100}, {100, 140}, {150, 200}});
  CHECK(timeline.stages[0][1].move == PipelineMove{PipelineMove::Kind::forward, 0});
  CHECK(timeline.stages[0][3].move == PipelineMove{PipelineMove::Kind::backward, 0});
  CHECK(timeline.micro_batches() == 1);
  CHECK(timeline.busy(0) == 40 + 5 + 100 + 70);
  // A move in several parts is one: it is held once, from its first part to its last.
  REQUIRE(timeline.held(0).size() == 1);
  CHECK(timeline.held(0)[0].time == Interval{0, 400});
  CHECK(timeline.held(0)[0].micro_batches == 1);
  CHECK(timeline.most_held(1) == 1);
}

TEST_CASE("measured_bubbles: a line per step, with the formula beside; long lines are broken") {
  const std::string text = measured_bubbles(measured_timelines(run_by_hand()));
  CHECK(text ==
        "measured, train, gpipe · 0.0003 ms · bubble by stage 107.5 %, 38.3 %, 107.5 %; by the formula 50.0 %\n"
        "measured, train, 1f1b · 0.0002 ms · bubble 50.0 % on every stage, 50.0 % by the formula");
  PipelineTimes times = equal_times(20, 1000000, 2000000);
  times.forward[7] = 1500000;
  PipelineTimeline many = play_pipeline(PipelineSchedule::gpipe, 3, times);
  many.clock = PipelineClock::nanoseconds;
  std::istringstream lines(measured_bubbles({{std::string(300, 'x') + "\n", many}}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CHECK(text_width(line) <= kColumns);
  }
  CHECK(count == 3);
}
