#include "tools/trace/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// The lane of an event, or nothing when it is not drawn.
std::optional<LaneKind> lane_of(const TraceFile& file, const TraceEvent& event, TimeBasis basis) {
  if (event.event_class == EventClass::transfer) return LaneKind::transfers;
  switch (counted_as(file, event, basis)) {
    case CountedAs::computation:
      return LaneKind::computation;
    case CountedAs::communication:
      return LaneKind::communication;
    case CountedAs::copy:
      return LaneKind::copies;
    case CountedAs::nothing:
      break;
  }
  if (event.event_class == EventClass::device_range) return LaneKind::device_ranges;
  if (event.event_class == EventClass::step) return LaneKind::steps;
  if (event.event_class == EventClass::host_range)
    return file.dialect == TraceDialect::muonwalk ? LaneKind::steps : LaneKind::host_ranges;
  return std::nullopt;
}

// Puts the events of the files into lanes. The same text of different files gets one number.
class TimelineBuilder {
 public:
  Timeline build(const std::vector<TraceFile>& files) {
    for (const TraceFile& file : files) add_file(file);
    for (auto& [lane, rows] : lanes_)
      for (TimelineRow& row : rows) timeline_.rows.push_back(std::move(row));
    start_clock();
    timeline_.texts = texts_.take();
    for (std::string& text : timeline_.texts) text = visible_name(text);
    return std::move(timeline_);
  }

 private:
  // Time begins with the first slice.
  void start_clock() {
    if (timeline_.rows.empty()) return;
    std::int64_t end = INT64_MIN;
    timeline_.begin_ns = INT64_MAX;
    for (const TimelineRow& row : timeline_.rows) {
      timeline_.begin_ns = std::min(timeline_.begin_ns, row.slices.front().begin_ns);
      for (const TimelineSlice& slice : row.slices) end = std::max(end, slice.end_ns());
    }
    timeline_.span_ns = end - timeline_.begin_ns;
    for (TimelineRow& row : timeline_.rows)
      for (TimelineSlice& slice : row.slices) slice.begin_ns -= timeline_.begin_ns;
  }

  void add_file(const TraceFile& file) {
    std::vector<TimeBasis> bases;
    for (std::size_t r = 0; r < file.ranks.size(); ++r) bases.push_back(time_basis(file, static_cast<int>(r)));
    for (const TraceEvent& event : file.events) {
      const auto rank = static_cast<std::size_t>(event.rank);
      if (const auto kind = lane_of(file, event, bases[rank]))
        place(file.ranks[rank], *kind, slice_of(file, event));
      else
        ++timeline_.not_drawn[fmt::format("{}s", event_class_name(event.event_class))];
    }
  }

  // Events come in the order in which they begin, the longer one first: what encloses others lies above them.
  void place(const TraceRank& rank, LaneKind kind, const TimelineSlice& slice) {
    std::vector<TimelineRow>& rows = lanes_[{rank.rank, kind}];
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const TimelineRow& each) { return each.slices.back().end_ns() <= slice.begin_ns; });
    if (row == rows.end()) {
      if (rows.size() == kMostRowsInLane) {
        ++timeline_.not_drawn[fmt::format("events of a lane that lie deeper than {} rows", kMostRowsInLane)];
        return;
      }
      row = rows.insert(row, {rank.rank, rank.label, kind, {}});
    }
    row->slices.push_back(slice);
    ++timeline_.events;
  }

  TimelineSlice slice_of(const TraceFile& file, const TraceEvent& event) {
    TimelineSlice slice;
    slice.begin_ns = event.begin_ns;
    slice.duration_ns = slice.busy_ns = event.duration_ns;
    slice.name = text_number(file, event.name);
    if (const CollectiveCall* call = file.call_of(event)) {
      slice.type = text_number(file, call->type);
      slice.group = text_number(file, call->group);
      slice.message_bytes = call->message_bytes;
      if (file.dialect == TraceDialect::muonwalk) slice.sent_bytes = call->sent_bytes;
    }
    return slice;
  }

  std::int32_t text_number(const TraceFile& file, std::int32_t name) {
    return name < 0 ? -1 : texts_.number(file.names[static_cast<std::size_t>(name)]);
  }

  Timeline timeline_;
  std::map<std::pair<int, LaneKind>, std::vector<TimelineRow>> lanes_;  // of a rank
  NameTable texts_;
};

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

void merge_row(std::vector<TimelineSlice>& row, std::int64_t resolution_ns) {
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

std::int64_t Timeline::slices() const {
  std::size_t sum = 0;
  for (const TimelineRow& row : rows) sum += row.slices.size();
  return static_cast<std::int64_t>(sum);
}

Timeline make_timeline(const std::vector<TraceFile>& files) { return TimelineBuilder().build(files); }

void merge_short_slices(Timeline& timeline, std::int64_t resolution_ns) {
  for (TimelineRow& row : timeline.rows) merge_row(row.slices, resolution_ns);
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
