#include "tools/trace/timeline.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "tools/trace/tests/read_picture.hpp"
#include "tools/trace/tests/trace_writing.hpp"
#include "tools/trace/trace_page.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

using Slices = std::vector<TimelineSlice>;

// What the rows of a kind hold.
std::vector<Slices> lane(const Timeline& timeline, int rank, LaneKind kind) {
  std::vector<Slices> rows;
  for (const TimelineRow& row : timeline.rows)
    if (row.rank == rank && row.kind == kind) rows.push_back(row.slices);
  return rows;
}

}  // namespace

TEST_CASE("timeline: a lesson's trace has computation, communication, and phases below their step") {
  const Timeline timeline = make_timeline(read_jsons({lesson_trace()}));
  REQUIRE(timeline.rows.size() == 8);
  CHECK(timeline.rows[7].label == "rank 1 (dp 1)");
  CHECK(timeline.span_ns == 100'000);
  CHECK(timeline.events == 8);
  CHECK(timeline.slices() == 8);
  CHECK(timeline.not_drawn.empty());
  for (int rank = 0; rank < 2; ++rank) {
    const auto steps = lane(timeline, rank, LaneKind::steps);
    REQUIRE(steps.size() == 2);
    CHECK(timeline.texts[static_cast<std::size_t>(steps[0].at(0).name)] == "step 1");
    CHECK(timeline.texts[static_cast<std::size_t>(steps[1].at(0).name)] == "optimizer: update");
    const TimelineSlice gather = lane(timeline, rank, LaneKind::communication).at(0).at(0);
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
  const auto kernels = lane(timeline, 0, LaneKind::computation);
  REQUIRE(kernels.size() == 2);
  REQUIRE(kernels[0].size() == 2);
  CHECK(kernels[0][1].begin_ns == 10'000);
  CHECK(kernels[1].size() == 2);
}

TEST_CASE("timeline: the clock begins and ends with what is drawn, whatever was recorded before and after") {
  const auto with_undrawn = [](TraceWriting trace) {
    return trace.event("cpu_op", "aten::early", 10, 5).event("cpu_op", "aten::late", 9000, 500).json();
  };
  const Timeline timeline = make_timeline(read_jsons({with_undrawn(TraceWriting(0, 2).kernel("gemm", 300, 20)),
                                                      with_undrawn(TraceWriting(1, 2).kernel("gemm", 200, 50))}));
  CHECK(timeline.not_drawn.at("host operators") == 4);
  CHECK(timeline.begin_ns == 200'000);
  CHECK(timeline.span_ns == 120'000);
  CHECK(lane(timeline, 0, LaneKind::computation).at(0).at(0).begin_ns == 100'000);
}

TEST_CASE("timeline: ranks of several files stand in their order, on one clock, and same names are one text") {
  const auto files =
      read_jsons({TraceWriting(1, 2).kernel("gemm", 30, 10).json(), TraceWriting(0, 2).kernel("gemm", 20, 50).json()});
  const Timeline timeline = make_timeline(files);
  REQUIRE(timeline.rows.size() == 2);
  CHECK(timeline.rows[0].rank == 0);
  CHECK(lane(timeline, 1, LaneKind::computation).at(0).at(0).begin_ns == 10'000);
  CHECK(timeline.texts == std::vector<std::string>{"gemm"});
}

TEST_CASE("timeline: what is not drawn is counted: operators beside a device, and what nests too deep") {
  TraceWriting trace;
  trace.kernel("gemm", 0, 100).event("cpu_op", "aten::mm", 0, 5).event("cpu_op", "aten::add", 6, 5);
  for (int depth = 0; depth < 9; ++depth) trace.event("user_annotation", "range", depth, 100 - 2 * depth);
  const Timeline timeline = make_timeline(read_jsons({trace.json()}));
  CHECK(timeline.not_drawn.at("host operators") == 2);
  CHECK(timeline.not_drawn.at("events of a lane that lie deeper than 6 rows") == 3);
  CHECK(lane(timeline, 0, LaneKind::host_ranges).size() == kMostRowsInLane);
  CHECK(timeline.events == 7);
  CHECK(timeline.slices() == 7);
}

namespace {

Slices random_row(std::mt19937& random, std::size_t events) {
  Slices row;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < events; ++i) {
    TimelineSlice slice;
    at += static_cast<std::int64_t>(random() % 50);
    slice.begin_ns = at;
    slice.duration_ns = slice.busy_ns = static_cast<std::int64_t>(random() % (random() % 10 == 0 ? 1000 : 40));
    slice.name = static_cast<std::int32_t>(random() % 2);
    slice.message_bytes = random() % 20 == 0 ? -1 : 8;
    slice.sent_bytes = random() % 20 == 0 ? -1 : static_cast<std::int64_t>(random() % 100);
    at = slice.end_ns();
    row.push_back(slice);
  }
  return row;
}

Timeline timeline_of(Slices row) {
  Timeline timeline;
  timeline.events = static_cast<std::int64_t>(row.size());
  timeline.span_ns = row.back().end_ns();
  timeline.rows = {{0, "rank 0", LaneKind::computation, std::move(row)}};
  return timeline;
}

const Slices& row_of(const Timeline& timeline) { return timeline.rows[0].slices; }

// What must hold of a row after merging, whatever its events were.
void check_merged(const Slices& before, const Slices& after, std::int64_t resolution) {
  std::size_t at = 0;
  for (const TimelineSlice& slice : after) {
    // It is made from the next events, whole: begin, end, and what they say together.
    const std::size_t first = at;
    std::int64_t busy = 0, bytes = 0, sent = 0;
    bool one_name = true;
    for (std::int64_t i = 0; i < slice.events; ++i, ++at) {
      busy += before.at(at).busy_ns;
      bytes = bytes < 0 || before[at].message_bytes < 0 ? -1 : bytes + before[at].message_bytes;
      sent = sent < 0 || before[at].sent_bytes < 0 ? -1 : sent + before[at].sent_bytes;
      one_name = one_name && before[at].name == before[first].name;
    }
    CHECK(slice.begin_ns == before[first].begin_ns);
    CHECK(slice.end_ns() == before[at - 1].end_ns());
    CHECK(slice.busy_ns == busy);
    CHECK(slice.message_bytes == bytes);
    CHECK(slice.sent_bytes == sent);
    CHECK(slice.name == (one_name ? before[first].name : -1));
    if (slice.events > 1) CHECK(slice.duration_ns < resolution);
  }
  CHECK(at == before.size());
  CHECK(static_cast<std::int64_t>(after.size()) <= 2 * before.back().end_ns() / resolution + 2);
}

}  // namespace

TEST_CASE("merge_short_slices: every event is in one slice, sums are kept, long events stay, and few slices are left") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Slices before = random_row(random, 1 + random() % 300);
    const std::int64_t resolution = 1 + static_cast<std::int64_t>(random() % 3000);
    Timeline timeline = timeline_of(before);
    merge_short_slices(timeline, resolution);
    check_merged(before, row_of(timeline), resolution);
  }
}

TEST_CASE("merge_until_few: nothing is merged where there is room, and never more are left than asked for") {
  std::mt19937 random(1);
  const Slices before = random_row(random, 5000);
  Timeline roomy = timeline_of(before);
  CHECK(merge_until_few({&roomy}, 5000) == 0);
  CHECK(roomy.slices() == 5000);
  for (const std::int64_t most : {4999, 1000, 100, 3, 2}) {
    CAPTURE(most);
    Timeline a = timeline_of(before), b = timeline_of({before.begin(), before.begin() + 50});
    CHECK(merge_until_few({&a, &b}, most) > 0);
    CHECK(a.slices() + b.slices() <= most);
    std::int64_t events = 0;
    for (const TimelineSlice& slice : row_of(a)) events += slice.events;
    CHECK(events == 5000);
  }
  // Merging stops as soon as it can: a little too many events lose little.
  Timeline almost = timeline_of(before);
  merge_until_few({&almost}, 4900);
  CHECK(almost.slices() > 2400);
}

TEST_CASE("span_parts: any trace: each microsecond of the span is in one part, as counting them one by one says") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int kMicroseconds = 300;
    bool computing[kMicroseconds] = {}, communicating[kMicroseconds] = {}, copying[kMicroseconds] = {};
    int first = kMicroseconds, last = 0, kernels = 0, calls = 0, called = 0;
    TraceWriting trace;
    for (int i = 0; i < 25; ++i) {
      const int begin = static_cast<int>(random() % 250), duration = static_cast<int>(1 + random() % 40);
      const int kind = static_cast<int>(random() % 3);
      kernels += kind == 0, calls += kind == 1, called += kind == 1 ? duration : 0;
      if (kind == 0) trace.kernel("gemm", begin, duration, static_cast<int>(random() % 3));
      if (kind == 1) trace.collective("allreduce", begin, duration, 8, "Float", "[0, 1]", 2);
      if (kind == 2) trace.event("gpu_memcpy", "Memcpy DtoD", begin, duration);
      for (int at = begin; at < begin + duration; ++at)
        (kind == 0 ? computing : kind == 1 ? communicating : copying)[at] = true;
      first = std::min(first, begin);
      last = std::max(last, begin + duration);
    }
    std::array<std::int64_t, kSpanParts> counted{};
    for (int at = first; at < last; ++at) {
      const SpanPart part = computing[at] && communicating[at] ? SpanPart::overlap
                            : computing[at]                    ? SpanPart::computation_alone
                            : communicating[at]                ? SpanPart::communication_alone
                            : copying[at]                      ? SpanPart::copies_alone
                                                               : SpanPart::idle;
      counted[static_cast<std::size_t>(part)] += 1000;
    }
    const Summary summary = summarize(read_jsons({trace.json()}));
    CHECK(summary.ranks[0].span_ns == (last - first) * 1000);
    CHECK(span_parts(summary.ranks[0]) == counted);
    CHECK(summary.ranks[0].kernels == kernels);
    CHECK(summary.ranks[0].collective_calls == calls);
    CHECK(summary.ranks[0].communication_sum_ns == called * 1000);
  }
}
