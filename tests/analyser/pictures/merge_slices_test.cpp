#include "sim/analyser/pictures/merge_slices.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace muonwalk::sim;

namespace {

TimelineRow random_row(std::mt19937& random, std::size_t events) {
  TimelineRow row;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < events; ++i) {
    TimelineSlice slice;
    at += static_cast<std::int64_t>(random() % 50);
    slice.begin_ns = at;
    slice.duration_ns = slice.busy_ns = static_cast<std::int64_t>(random() % (random() % 10 == 0 ? 1000 : 40));
    slice.name = static_cast<std::int32_t>(random() % 2);
    slice.message_bytes = random() % 20 == 0 ? -1 : 8;
    at = slice.end_ns();
    row.push_back(slice);
  }
  return row;
}

Timeline timeline_of(TimelineRow row) {
  Timeline timeline;
  timeline.events = static_cast<std::int64_t>(row.size());
  timeline.span_ns = row.back().end_ns();
  timeline.ranks = {{0, "rank 0", {{LaneKind::computation, {std::move(row)}}}}};
  return timeline;
}

const TimelineRow& row_of(const Timeline& timeline) { return timeline.ranks[0].lanes[0].rows[0]; }

// What must hold of a row after merging, whatever its events were.
void check_merged(const TimelineRow& before, const TimelineRow& after, std::int64_t resolution) {
  std::size_t at = 0;
  for (const TimelineSlice& slice : after) {
    // It is made from the next events, whole: begin, end, and what they say together.
    const std::size_t first = at;
    std::int64_t busy = 0, bytes = 0;
    bool one_name = true;
    for (std::int64_t i = 0; i < slice.events; ++i, ++at) {
      busy += before.at(at).busy_ns;
      bytes = bytes < 0 || before[at].message_bytes < 0 ? -1 : bytes + before[at].message_bytes;
      one_name = one_name && before[at].name == before[first].name;
    }
    CHECK(slice.begin_ns == before[first].begin_ns);
    CHECK(slice.end_ns() == before[at - 1].end_ns());
    CHECK(slice.busy_ns == busy);
    CHECK(slice.message_bytes == bytes);
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
    const TimelineRow before = random_row(random, 1 + random() % 300);
    const std::int64_t resolution = 1 + static_cast<std::int64_t>(random() % 3000);
    Timeline timeline = timeline_of(before);
    merge_short_slices(timeline, resolution);
    check_merged(before, row_of(timeline), resolution);
  }
}

TEST_CASE("merge_until_few: nothing is merged where there is room, and never more are left than asked for") {
  std::mt19937 random(1);
  const TimelineRow before = random_row(random, 5000);
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
