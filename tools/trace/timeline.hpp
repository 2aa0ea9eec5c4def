#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/trace/rank_times.hpp"

namespace muonwalk::sim {

/// What a lane of the timeline shows of a rank.
enum class LaneKind { computation, communication, copies, device_ranges, host_ranges, steps, transfers };
/// How many kinds there are.
constexpr int kLaneKinds = 7;

/// A stretch of a lane that is drawn as one: an event, or several that are too short to be told apart. Events are all
/// of one name where `name` is one, in one group where `group` is one, and so on.
struct TimelineSlice {
  std::int64_t begin_ns = 0;        ///< Counted from Timeline::begin_ns.
  std::int64_t duration_ns = 0;     ///< From the start of the first event to the end of the last.
  std::int64_t busy_ns = 0;         ///< What of the duration the events cover.
  std::int64_t events = 1;          ///< How many are drawn as this one.
  std::int64_t message_bytes = -1;  ///< The sum; −1: one of them does not say, or is not a collective.
  std::int64_t sent_bytes = -1;     ///< What the rank handed to the transport; only lessons record it.
  std::int32_t name = 0;            ///< An index into Timeline::texts; −1: names that differ.
  std::int32_t type = -1;           ///< An index into Timeline::texts; −1: not said, or types that differ.
  std::int32_t group = -1;          ///< An index into Timeline::texts; −1: not said, or groups that differ.

  /// When it ends, since Timeline::begin_ns.
  std::int64_t end_ns() const { return begin_ns + duration_ns; }
};

/// Events of one kind and one rank, as slices that do not overlap, in the order in which they begin. What nests, or
/// runs at the same time on several streams, takes several rows.
struct TimelineRow {
  int rank = 0;
  std::string label;  ///< The rank's: "rank 3 (dp 1, tp 1)".
  LaneKind kind = LaneKind::computation;
  std::vector<TimelineSlice> slices;
};

/// A run, laid out in rows: by rank, then by kind, then from the outside of what nests inwards.
struct Timeline {
  std::vector<TimelineRow> rows;
  std::vector<std::string> texts;                 ///< Every text that slices refer to, once.
  std::int64_t begin_ns = 0;                      ///< When the first of the drawn events began, by the trace's clock.
  std::int64_t span_ns = 0;                       ///< From there to the end of the last one.
  std::int64_t events = 0;                        ///< How many are drawn.
  std::map<std::string, std::int64_t> not_drawn;  ///< Which events are not drawn, and how many.

  /// How many slices there are in all rows.
  std::int64_t slices() const;
};

/// More rows of a rank and a kind than these hold nothing that a reader could follow: events that would need another
/// one are not drawn.
constexpr std::size_t kMostRowsInLane = 6;

/// Lays out all files of a run, every event as a slice of its own: computation, communication and copies as rank_times
/// counts them, and beside them the ranges that the program named.
Timeline make_timeline(const std::vector<TraceFile>& files);

/// Draws neighbours of a row as one slice as long as all of it stays shorter than `resolution_ns`, which is what a
/// pixel stands for: a row then has at most 2 · span / resolution + 2 slices, however many events it had. Longer events
/// stay as they are.
void merge_short_slices(Timeline& timeline, std::int64_t resolution_ns);

/// Merges the timelines of a picture at coarser and coarser resolutions, the same for all, until they have at most
/// `most_slices` together, or until every row is a single slice. Returns the resolution in nanoseconds; 0 when nothing
/// had to be merged.
std::int64_t merge_until_few(const std::vector<Timeline*>& timelines, std::int64_t most_slices);

}  // namespace muonwalk::sim
