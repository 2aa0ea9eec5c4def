#include "sim/analyser/pictures/merge_slices.hpp"

#include <algorithm>

namespace muonwalk::sim {
namespace {

void keep_if_same(std::int32_t& text, std::int32_t other) {
  if (text != other) text = -1;
}

void add_bytes(std::int64_t& sum, std::int64_t more) { sum = sum < 0 || more < 0 ? -1 : sum + more; }

// Slices of a row do not overlap, so what they cover adds up.
void absorb(TimelineSlice& slice, const TimelineSlice& next) {
  slice.duration_ns = next.end_ns() - slice.begin_ns;
  slice.busy_ns += next.busy_ns;
  slice.events += next.events;
  keep_if_same(slice.name, next.name);
  keep_if_same(slice.type, next.type);
  keep_if_same(slice.group, next.group);
  add_bytes(slice.message_bytes, next.message_bytes);
  add_bytes(slice.sent_bytes, next.sent_bytes);
}

void merge_row(TimelineRow& row, std::int64_t resolution_ns) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i].end_ns() - row[last].begin_ns < resolution_ns)
      absorb(row[last], row[i]);
    else
      row[++last] = row[i];
  }
  if (!row.empty()) row.resize(last + 1);
}

std::int64_t slices_of(const std::vector<Timeline*>& timelines) {
  std::int64_t sum = 0;
  for (const Timeline* timeline : timelines) sum += timeline->slices();
  return sum;
}

}  // namespace

void merge_short_slices(Timeline& timeline, std::int64_t resolution_ns) {
  for (TimelineRank& rank : timeline.ranks)
    for (TimelineLane& lane : rank.lanes)
      for (TimelineRow& row : lane.rows) merge_row(row, resolution_ns);
}

std::int64_t merge_until_few(const std::vector<Timeline*>& timelines, std::int64_t most_slices) {
  if (slices_of(timelines) <= most_slices) return 0;
  std::int64_t span = 1;
  for (const Timeline* timeline : timelines) span = std::max(span, timeline->span_ns);
  // Each round goes on from what the one before has merged.
  std::int64_t resolution = std::max<std::int64_t>(1, span >> 24);
  for (;; resolution *= 2) {
    for (Timeline* timeline : timelines) merge_short_slices(*timeline, resolution);
    if (slices_of(timelines) <= most_slices || resolution > span) return resolution;
  }
}

}  // namespace muonwalk::sim
