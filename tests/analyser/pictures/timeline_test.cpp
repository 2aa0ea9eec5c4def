#include "sim/analyser/pictures/timeline.hpp"

#include <doctest/doctest.h>

#include "tests/analyser/pictures/read_picture.hpp"
#include "tests/analyser/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

const TimelineLane& lane(const Timeline& timeline, int rank, LaneKind kind) {
  for (const TimelineLane& each : timeline.ranks.at(static_cast<std::size_t>(rank)).lanes)
    if (each.kind == kind) return each;
  throw std::runtime_error("there is no such lane");
}

}  // namespace

TEST_CASE("timeline: a lesson's trace has computation, communication, and phases below their step") {
  const Timeline timeline = make_timeline(read_jsons({lesson_trace()}));
  REQUIRE(timeline.ranks.size() == 2);
  CHECK(timeline.ranks[1].label == "rank 1 (dp 1)");
  CHECK(timeline.span_ns == 100'000);
  CHECK(timeline.events == 8);
  CHECK(timeline.slices() == 8);
  CHECK(timeline.not_drawn.empty());
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(timeline.ranks[static_cast<std::size_t>(rank)].lanes.size() == 3);
    const TimelineLane& steps = lane(timeline, rank, LaneKind::steps);
    REQUIRE(steps.rows.size() == 2);
    CHECK(timeline.texts[static_cast<std::size_t>(steps.rows[0].at(0).name)] == "step 1");
    CHECK(timeline.texts[static_cast<std::size_t>(steps.rows[1].at(0).name)] == "optimizer: update");
    const TimelineSlice& gather = lane(timeline, rank, LaneKind::communication).rows.at(0).at(0);
    CHECK(gather.begin_ns == (rank == 0 ? 40'000 : 60'000));
    CHECK(gather.duration_ns == (rank == 0 ? 40'000 : 20'000));
    CHECK(gather.message_bytes == 32);
    CHECK(gather.sent_bytes == 16);
    CHECK(timeline.texts[static_cast<std::size_t>(gather.type)] == "float32");
    CHECK(timeline.texts[static_cast<std::size_t>(gather.group)] == "[0, 1]");
  }
}

TEST_CASE("timeline: streams that run at the same time take a row each, and time begins with the first event") {
  TraceWriting trace;
  trace.kernel("a", 1000, 10, 7).kernel("b", 1005, 10, 20).kernel("c", 1010, 10, 7).kernel("d", 1015, 1, 20);
  const Timeline timeline = make_timeline(read_jsons({trace.json()}));
  CHECK(timeline.begin_ns == 1'000'000);
  CHECK(timeline.span_ns == 20'000);
  const TimelineLane& kernels = lane(timeline, 0, LaneKind::computation);
  REQUIRE(kernels.rows.size() == 2);
  REQUIRE(kernels.rows[0].size() == 2);
  CHECK(kernels.rows[0][1].begin_ns == 10'000);
  CHECK(kernels.rows[1].size() == 2);
}

TEST_CASE("timeline: ranks of several files stand in their order, on one clock, and same names are one text") {
  const auto files =
      read_jsons({TraceWriting(1, 2).kernel("gemm", 30, 10).json(), TraceWriting(0, 2).kernel("gemm", 20, 50).json()});
  const Timeline timeline = make_timeline(files);
  REQUIRE(timeline.ranks.size() == 2);
  CHECK(timeline.ranks[0].rank == 0);
  CHECK(lane(timeline, 1, LaneKind::computation).rows[0][0].begin_ns == 10'000);
  CHECK(timeline.texts == std::vector<std::string>{"gemm"});
}

TEST_CASE("timeline: what is not drawn is counted: operators beside a device, and what nests too deep") {
  TraceWriting trace;
  trace.kernel("gemm", 0, 100).event("cpu_op", "aten::mm", 0, 5).event("cpu_op", "aten::add", 6, 5);
  for (int depth = 0; depth < 9; ++depth) trace.event("user_annotation", "range", depth, 100 - 2 * depth);
  const Timeline timeline = make_timeline(read_jsons({trace.json()}));
  CHECK(timeline.not_drawn.at("host operators") == 2);
  CHECK(timeline.not_drawn.at("events of a lane that lie deeper than 6 rows") == 3);
  CHECK(lane(timeline, 0, LaneKind::host_ranges).rows.size() == kMostRowsInLane);
  CHECK(timeline.events == 7);
  CHECK(timeline.slices() == 7);
}
