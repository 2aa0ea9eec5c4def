// Schedules of a pipeline: for all small numbers of stages and micro-batches, what every stage does, and whether they
// can do it together.
#include "src/train/pipeline/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

using Kind = PipelineMove::Kind;

constexpr PipelineSchedule kBoth[] = {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b};
constexpr int kMostStages = 7;
constexpr int kMostMicroBatches = 13;

// Every schedule, number of stages, and number of micro-batches.
template <class Check>
void for_all_pipelines(const Check& check) {
  for (const PipelineSchedule schedule : kBoth)
    for (int stages = 1; stages <= kMostStages; ++stages)
      for (int micro_batches = 1; micro_batches <= kMostMicroBatches; ++micro_batches) {
        INFO(pipeline_schedule_name(schedule) << ", " << stages << " stages, " << micro_batches << " micro-batches");
        check(schedule, stages, micro_batches);
      }
}

std::size_t place_of(const std::vector<PipelineMove>& moves, PipelineMove move) {
  return static_cast<std::size_t>(std::find(moves.begin(), moves.end(), move) - moves.begin());
}

// "F0 F1 B0 B1"
std::string short_text(const std::vector<PipelineMove>& moves) {
  std::string text;
  for (const PipelineMove move : moves)
    text += (text.empty() ? "" : " ") + std::string(move.kind == Kind::forward ? "F" : "B") +
            std::to_string(move.micro_batch);
  return text;
}

// When a stage waits for what it has sent to be taken.
enum class Sends {
  waited_for_at_once,  // a send that returns when it has been taken
  one_at_a_time,       // posted; waited for before the next one in the same direction
  waited_for_by_moves  // posted; an activation is waited for when its gradient has come, a gradient as one_at_a_time
};

// A stage's part of the step, message by message.
struct MessageMove {
  enum class What { receive, post, wait };  // wait: until what was posted has been taken
  What what;
  int peer;     // the other stage
  int message;  // the micro-batch's number
};

std::vector<MessageMove> messages_of(PipelineSchedule schedule, int stages, int stage, int micro_batches, Sends sends) {
  using What = MessageMove::What;
  std::vector<MessageMove> list;
  for (const PipelineMove move : pipeline_moves(schedule, stages, stage, micro_batches)) {
    const int ahead = move.kind == Kind::forward ? 1 : -1;
    const int from = stage - ahead, to = stage + ahead, i = move.micro_batch;
    if (from >= 0 && from < stages) list.push_back({What::receive, from, i});
    if (move.kind == Kind::backward && from < stages && sends == Sends::waited_for_by_moves)
      list.push_back({What::wait, from, i});  // the activation whose gradient has come
    if (to < 0 || to >= stages) continue;
    const bool by_number =
        sends == Sends::one_at_a_time || (sends == Sends::waited_for_by_moves && move.kind == Kind::backward);
    if (by_number && i > 0) list.push_back({What::wait, to, i - 1});
    list.push_back({What::post, to, i});
    if (sends == Sends::waited_for_at_once) list.push_back({What::wait, to, i});
  }
  return list;
}

// Whether all stages reach their end. A message is taken when its receiver asks for it and it has been posted.
bool can_run(PipelineSchedule schedule, int stages, int micro_batches, Sends sends) {
  using What = MessageMove::What;
  std::vector<std::vector<MessageMove>> lists;
  for (int stage = 0; stage < stages; ++stage)
    lists.push_back(messages_of(schedule, stages, stage, micro_batches, sends));
  std::vector<std::size_t> at(lists.size(), 0);
  std::set<std::vector<int>> posted, taken;  // from, to, micro-batch
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < stages; ++stage) {
      const auto s = static_cast<std::size_t>(stage);
      for (; at[s] < lists[s].size(); ++at[s], moved = true) {
        const MessageMove& next = lists[s][at[s]];
        if (next.what == What::post) posted.insert({stage, next.peer, next.message});
        if (next.what == What::wait && taken.count({stage, next.peer, next.message}) == 0) break;
        if (next.what == What::receive && posted.count({next.peer, stage, next.message}) == 0) break;
        if (next.what == What::receive) taken.insert({next.peer, stage, next.message});
      }
    }
  }
  for (std::size_t s = 0; s < lists.size(); ++s)
    if (at[s] < lists[s].size()) return false;
  return true;
}

// The numbers of what a stage sends to, or receives from, a neighbour, in order.
std::vector<int> sent_or_received(const std::vector<MessageMove>& list, MessageMove::What what, int peer) {
  std::vector<int> numbers;
  for (const MessageMove& move : list)
    if (move.what == what && move.peer == peer) numbers.push_back(move.message);
  return numbers;
}

}  // namespace

TEST_CASE("pipeline moves: every micro-batch goes forward once and then backward once, each by number") {
  for_all_pipelines([](PipelineSchedule schedule, int stages, int micro_batches) {
    for (int stage = 0; stage < stages; ++stage) {
      CAPTURE(stage);
      const auto moves = pipeline_moves(schedule, stages, stage, micro_batches);
      REQUIRE(moves.size() == 2 * static_cast<std::size_t>(micro_batches));
      std::vector<int> forwards, backwards, in_order;
      for (const PipelineMove move : moves)
        (move.kind == Kind::forward ? forwards : backwards).push_back(move.micro_batch);
      for (int i = 0; i < micro_batches; ++i) {
        in_order.push_back(i);
        REQUIRE(place_of(moves, {Kind::forward, i}) < place_of(moves, {Kind::backward, i}));
      }
      REQUIRE(forwards == in_order);
      REQUIRE(backwards == in_order);
    }
  });
}

TEST_CASE("pipeline moves: what a schedule is named for") {
  for_all_pipelines([](PipelineSchedule schedule, int stages, int micro_batches) {
    for (int stage = 0; stage < stages; ++stage) {
      CAPTURE(stage);
      const auto moves = pipeline_moves(schedule, stages, stage, micro_batches);
      const auto first_backward = place_of(moves, {Kind::backward, 0});
      if (schedule == PipelineSchedule::gpipe) {
        REQUIRE(first_backward == static_cast<std::size_t>(micro_batches));
        continue;
      }
      // Warm-up, one forward and one backward in turn, and the rest.
      const int warm_up = std::min(stages - stage - 1, micro_batches);
      std::vector<PipelineMove> expected;
      for (int i = 0; i < warm_up; ++i) expected.push_back({Kind::forward, i});
      for (int i = 0; i < micro_batches - warm_up; ++i) {
        expected.push_back({Kind::forward, warm_up + i});
        expected.push_back({Kind::backward, i});
      }
      for (int i = micro_batches - warm_up; i < micro_batches; ++i) expected.push_back({Kind::backward, i});
      REQUIRE(short_text(moves) == short_text(expected));
    }
  });
  CHECK(short_text(pipeline_moves(PipelineSchedule::gpipe, 2, 0, 3)) == "F0 F1 F2 B0 B1 B2");
  CHECK(short_text(pipeline_moves(PipelineSchedule::one_f_one_b, 3, 0, 4)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(short_text(pipeline_moves(PipelineSchedule::one_f_one_b, 3, 2, 4)) == "F0 B0 F1 B1 F2 B2 F3 B3");
  CHECK(short_text(pipeline_moves(PipelineSchedule::one_f_one_b, 4, 0, 2)) == "F0 F1 B0 B1");
}

TEST_CASE("most_in_flight: the formula counts what is held, from a forward to its backward") {
  for_all_pipelines([](PipelineSchedule schedule, int stages, int micro_batches) {
    for (int stage = 0; stage < stages; ++stage) {
      CAPTURE(stage);
      int held = 0, most = 0;
      for (const PipelineMove move : pipeline_moves(schedule, stages, stage, micro_batches)) {
        held += move.kind == Kind::forward ? 1 : -1;
        most = std::max(most, held);
      }
      REQUIRE(held == 0);
      REQUIRE(most_in_flight(schedule, stages, stage, micro_batches) == most);
      REQUIRE(most == (schedule == PipelineSchedule::gpipe ? micro_batches : std::min(micro_batches, stages - stage)));
    }
  });
}

TEST_CASE("pipeline moves: neighbours send and receive the same micro-batches in the same order") {
  using What = MessageMove::What;
  for_all_pipelines([](PipelineSchedule schedule, int stages, int micro_batches) {
    for (int stage = 0; stage + 1 < stages; ++stage) {
      CAPTURE(stage);
      const auto here = messages_of(schedule, stages, stage, micro_batches, Sends::one_at_a_time);
      const auto next = messages_of(schedule, stages, stage + 1, micro_batches, Sends::one_at_a_time);
      REQUIRE(sent_or_received(here, What::post, stage + 1) == sent_or_received(next, What::receive, stage));
      REQUIRE(sent_or_received(next, What::post, stage) == sent_or_received(here, What::receive, stage + 1));
      REQUIRE(sent_or_received(here, What::post, stage + 1).size() == static_cast<std::size_t>(micro_batches));
    }
  });
}

TEST_CASE("pipeline moves: with posted sends, no stage waits forever, whenever sends are waited for") {
  for_all_pipelines([](PipelineSchedule schedule, int stages, int micro_batches) {
    REQUIRE(can_run(schedule, stages, micro_batches, Sends::waited_for_by_moves));
    REQUIRE(can_run(schedule, stages, micro_batches, Sends::one_at_a_time));
  });
}

TEST_CASE("pipeline moves: sends that wait until they are taken do for GPipe, and hang 1F1B") {
  for_all_pipelines([](PipelineSchedule schedule, int stages, int micro_batches) {
    const bool hangs = schedule == PipelineSchedule::one_f_one_b && stages > 1 && micro_batches > 1;
    REQUIRE(can_run(schedule, stages, micro_batches, Sends::waited_for_at_once) == !hangs);
  });
}

TEST_CASE("split_layers: contiguous, in order, and as equal as they can be") {
  for (int layers = 1; layers <= 20; ++layers)
    for (int stages = 1; stages <= layers; ++stages) {
      CAPTURE(layers);
      CAPTURE(stages);
      Index next = 0, before = layers / stages;
      for (int stage = 0; stage < stages; ++stage) {
        const Range range = split_layers(layers, stages, stage);
        REQUIRE(range.begin == next);
        REQUIRE(range.size() >= before);  // the last ones have more
        REQUIRE(range.size() <= (layers + stages - 1) / stages);
        next = range.end;
        before = range.size();
      }
      REQUIRE(next == layers);
    }
  CHECK(split_layers(7, 3, 0) == Range{0, 2});
  CHECK(split_layers(7, 3, 2) == Range{4, 7});
}

TEST_CASE("pipelines that can't be are refused") {
  CHECK(usage_error([] { split_layers(4, 5, 0); }) ==
        "--pp 5 makes more stages than the model has layers, 4; it takes at most 4");
  CHECK(usage_error([] { parse_pipeline_schedule("interleaved"); }) ==
        "--schedule interleaved is not known; it takes gpipe or 1f1b");
  for (const PipelineSchedule schedule : kBoth) {
    CHECK(parse_pipeline_schedule(pipeline_schedule_name(schedule)) == schedule);
    CHECK_THROWS_WITH_AS(pipeline_moves(schedule, 2, 2, 1), "there is no stage 2 in a pipeline of 2",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(pipeline_moves(schedule, 2, -1, 1), "there is no stage -1 in a pipeline of 2",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(pipeline_moves(schedule, 2, 0, 0), "a pipeline needs at least one micro-batch",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(most_in_flight(schedule, 1, 1, 1), "there is no stage 1 in a pipeline of 1",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(most_in_flight(schedule, 1, 0, 0), "a pipeline needs at least one micro-batch",
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(split_layers(4, 2, 2), "there is no stage 2 in a pipeline of 2", std::invalid_argument);
  CHECK_THROWS_WITH_AS(bubble_formula(0, 1), "there is no stage 0 in a pipeline of 0", std::invalid_argument);
  CHECK_THROWS_WITH_AS(bubble_formula(1, 0), "a pipeline needs at least one micro-batch", std::invalid_argument);
}

TEST_CASE("names of moves; the published formula") {
  CHECK(move_name({Kind::forward, 3}) == "forward of micro-batch 3");
  CHECK(move_name({Kind::backward, 12}) == "backward of micro-batch 12");
  CHECK(bubble_formula(2, 4) == 0.25);
  CHECK(bubble_formula(1, 9) == 0);
  CHECK(bubble_formula(4, 1) == 3);
}
