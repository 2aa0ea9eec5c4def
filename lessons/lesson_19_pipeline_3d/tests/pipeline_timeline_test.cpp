// Schedules that are played: what of the published formula comes out, and that no stage cheats.
#include "src/train/pipeline/pipeline_timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>

#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

using Kind = PipelineMove::Kind;

constexpr PipelineSchedule kBoth[] = {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b};

// When a stage began and ended each of its moves.
std::map<std::pair<Kind, int>, Interval> times_of(const PipelineTimeline& timeline, int stage) {
  std::map<std::pair<Kind, int>, Interval> times;
  for (const PipelineSpan& span : timeline.stages[static_cast<std::size_t>(stage)])
    times[{span.move.kind, span.move.micro_batch}] = span.time;
  return times;
}

// The moment at which a stage has what it needs for a move, and is free for it.
std::int64_t ready_at(const PipelineTimeline& timeline, int stage, std::size_t number) {
  const auto& spans = timeline.stages[static_cast<std::size_t>(stage)];
  const PipelineMove move = spans[number].move;
  std::int64_t ready = number == 0 ? 0 : spans[number - 1].time.end;
  const int from = move.kind == Kind::forward ? stage - 1 : stage + 1;
  if (from >= 0 && from < static_cast<int>(timeline.stages.size()))
    ready = std::max(ready, times_of(timeline, from).at({move.kind, move.micro_batch}).end);
  return ready;
}

// The most micro-batches whose activations a stage holds, by looking at every unit of time.
int most_held(const PipelineTimeline& timeline, int stage) {
  const auto times = times_of(timeline, stage);
  int most = 0;
  for (std::int64_t moment = 0; moment < timeline.extent().end; ++moment) {
    int held = 0;
    for (int i = 0; i < timeline.micro_batches(); ++i)
      held += times.at({Kind::forward, i}).begin <= moment && moment < times.at({Kind::backward, i}).end;
    most = std::max(most, held);
  }
  return most;
}

}  // namespace

TEST_CASE("played pipelines: equal stages and fast messages: the bubble is exactly (p − 1) / m, in both schedules") {
  for (const PipelineSchedule schedule : kBoth)
    for (int stages = 1; stages <= 8; ++stages)
      for (int micro_batches = 1; micro_batches <= 17; ++micro_batches)
        for (const auto& [forward, backward] : {std::pair(1, 1), std::pair(1, 2), std::pair(3, 2), std::pair(5, 0)}) {
          INFO(pipeline_schedule_name(schedule) << ", " << stages << " stages, " << micro_batches << " micro-batches, "
                                                << forward << " and " << backward);
          const PipelineTimeline played = play_pipeline(schedule, stages, micro_batches, forward, backward);
          REQUIRE(played.micro_batches() == micro_batches);
          REQUIRE(played.extent() == Interval{0, (micro_batches + stages - 1) * (forward + backward)});
          for (int stage = 0; stage < stages; ++stage) {
            REQUIRE(played.busy(stage) == micro_batches * (forward + backward));
            REQUIRE(played.idle(stage) * micro_batches == played.busy(stage) * (stages - 1));
            REQUIRE(played.bubble(stage) == near(bubble_formula(stages, micro_batches), 1e-5));
          }
        }
}

TEST_CASE("played pipelines: any times: moves in the schedule's order, each as early as it can be, and no earlier") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto up_to = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
    const int stages = 1 + up_to(5), micro_batches = 1 + up_to(11);
    const std::int64_t forward = 1 + up_to(6), backward = 1 + up_to(9);
    for (const PipelineSchedule schedule : kBoth) {
      const PipelineTimeline played = play_pipeline(schedule, stages, micro_batches, forward, backward);
      std::int64_t end = 0;
      for (int stage = 0; stage < stages; ++stage) {
        CAPTURE(stage);
        const auto& spans = played.stages[static_cast<std::size_t>(stage)];
        const auto moves = pipeline_moves(schedule, stages, stage, micro_batches);
        REQUIRE(spans.size() == moves.size());
        for (std::size_t i = 0; i < spans.size(); ++i) {
          REQUIRE(spans[i].move == moves[i]);
          REQUIRE(spans[i].time.begin == ready_at(played, stage, i));
          REQUIRE(spans[i].time.end - spans[i].time.begin == (moves[i].kind == Kind::forward ? forward : backward));
          end = std::max(end, spans[i].time.end);
        }
        REQUIRE(played.busy(stage) == micro_batches * (forward + backward));
        REQUIRE(played.busy(stage) + played.idle(stage) == played.extent().end - played.extent().begin);
        REQUIRE(most_held(played, stage) <= most_in_flight(schedule, stages, stage, micro_batches));
      }
      REQUIRE(played.extent() == Interval{0, end});
    }
  }
}

TEST_CASE("played pipelines: what stages hold is what the formula says") {
  for (const PipelineSchedule schedule : kBoth)
    for (int stages = 1; stages <= 5; ++stages)
      for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
        const PipelineTimeline played = play_pipeline(schedule, stages, micro_batches, 2, 3);
        for (int stage = 0; stage < stages; ++stage) {
          INFO(pipeline_schedule_name(schedule) << ", stage " << stage << " of " << stages << ", " << micro_batches);
          REQUIRE(most_held(played, stage) == most_in_flight(schedule, stages, stage, micro_batches));
        }
      }
}

TEST_CASE("played pipelines: two stages, by hand") {
  const PipelineTimeline played = play_pipeline(PipelineSchedule::one_f_one_b, 2, 2, 1, 3);
  const auto first = times_of(played, 0), second = times_of(played, 1);
  CHECK(first.at({Kind::forward, 0}) == Interval{0, 1});
  CHECK(first.at({Kind::forward, 1}) == Interval{1, 2});
  CHECK(second.at({Kind::forward, 0}) == Interval{1, 2});
  CHECK(second.at({Kind::backward, 0}) == Interval{2, 5});
  CHECK(first.at({Kind::backward, 0}) == Interval{5, 8});
  CHECK(second.at({Kind::forward, 1}) == Interval{5, 6});
  CHECK(second.at({Kind::backward, 1}) == Interval{6, 9});
  CHECK(first.at({Kind::backward, 1}) == Interval{9, 12});
  PipelineTimeline later = played;
  for (auto& spans : later.stages)
    for (PipelineSpan& span : spans) span.time = {span.time.begin + 100, span.time.end + 100};
  CHECK(later.extent() == Interval{100, 112});
  CHECK(later.idle(1) == played.idle(1));
  CHECK(most_held(played, 0) == 2);
  CHECK(most_held(played, 1) == 1);
}

TEST_CASE("played pipelines: what can't be is refused; a timeline of nothing is empty") {
  const auto play = [](int stages, std::int64_t forward, std::int64_t backward) {
    return play_pipeline(PipelineSchedule::gpipe, stages, 2, forward, backward);
  };
  CHECK_THROWS_WITH_AS(play(0, 1, 1), "a pipeline needs at least one stage", std::invalid_argument);
  CHECK_THROWS_WITH_AS(play(2, -1, 1), "no move takes less than no time", std::invalid_argument);
  CHECK_THROWS_WITH_AS(play(2, 1, -1), "no move takes less than no time", std::invalid_argument);
  CHECK_THROWS_AS(play_pipeline(PipelineSchedule::gpipe, 2, 0, 1, 1), std::invalid_argument);
  PipelineTimeline nothing;
  nothing.stages.resize(1);
  CHECK(nothing.extent() == Interval{});
  CHECK(nothing.micro_batches() == 0);
  CHECK(nothing.busy(0) == 0);
  CHECK(nothing.bubble(0) == 0);
}
