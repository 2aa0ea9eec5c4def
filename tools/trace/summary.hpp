#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/numerics/interval_set.hpp"
#include "tools/trace/event.hpp"

namespace muonwalk::sim {

/// From the start of the first to the end of the last event for which `which` holds; [0, 0) where there are none.
template <class Events, class Which>
Interval extent(const Events& events, const Which& which) {
  Interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const TraceEvent& event : events)
    if (which(event)) all = {std::min(all.begin, event.begin_ns), std::max(all.end, event.end_ns())};
  return all.end < all.begin ? Interval() : all;
}

/// The ranges of a class that are named as the optimizer, in the order in which they begin.
std::vector<Interval> optimizer_ranges(const TraceFile& file, int rank, EventClass event_class);

/// What the times of a rank are made from.
enum class TimeBasis {
  device,    ///< Kernels.
  host,      ///< No device: operators on the CPU compute, Gloo communicates.
  recorded,  ///< What a lesson recorded.
  none       ///< Neither kernels nor collectives on the CPU: no time can be told.
};

/// What the times of a rank are made from, by the events that it has.
TimeBasis time_basis(const TraceFile& file, int rank);

/// The moments in which a rank computes, communicates, copies; where nothing is known, all are empty.
struct RankTimes {
  TimeBasis basis = TimeBasis::none;  ///< What the times are made from.
  /// When the rank did each.
  /// @{
  IntervalSet computation, communication, copies;
  /// @}
  Interval span;  ///< From the first to the last of these events.
};

/// The times of one rank (an index into TraceFile::ranks).
RankTimes rank_times(const TraceFile& file, int rank);

/// The class of events that the communication of a rank consists of: kernels, or where there is no device, host
/// collectives.
EventClass communication_class(TimeBasis basis);

/// All calls of one collective, with one element type, in one group.
struct CollectiveLine {
  Collective collective = Collective::other;
  std::string type;    ///< "float32"; "" where the trace does not say.
  std::string group;   ///< "[0, 2]" or "dp"; "" where the trace does not say.
  int group_size = 0;  ///< 0 where the trace does not say.
  std::int64_t calls = 0;
  std::int64_t time_ns = 0;                   ///< The sum over the calls, waiting included.
  std::optional<std::int64_t> message_bytes;  ///< The sum; nothing where any call does not say.
  std::optional<std::int64_t> sent_bytes;     ///< The sum, as in the ledger; nothing where any call does not say.

  /// GB/s (10⁹ bytes): message bytes per time, and that times bus_factor. Nothing without bytes, time, or group size.
  /// @{
  std::optional<double> algorithm_bandwidth() const;
  std::optional<double> bus_bandwidth() const;
  /// @}

  /// Adds the calls of another line: their number, time and bytes.
  void add(const CollectiveLine& more);
};

/// One of the figures of a CollectiveLine, and what outputs call it. Lists go through kCollectiveFigures.
struct CollectiveFigure {
  const char* key;                                             ///< The name in JSON.
  const char* name;                                            ///< The heading in text.
  const char* unit;                                            ///< "" for a count, "ms", "bytes", "GB/s".
  std::optional<double> (*value)(const CollectiveLine& line);  ///< Nothing where it is not known.
};
/// They stand in the order of JSON and the page.
extern const std::array<CollectiveFigure, 6> kCollectiveFigures;

/// How long ranges named as the optimizer take, and of what.
struct OptimizerShare {
  std::int64_t ranges = 0;            ///< How many ranges were found; 0: nothing is known.
  std::int64_t time_ns = 0;           ///< The union of the ranges.
  std::int64_t of_ns = 0;             ///< The span that holds them, of which they are a share.
  std::int64_t communication_ns = 0;  ///< Part of time_ns: a collective was under way; 0 on the host.
  /// From 0 to 1; 0 where nothing is known.
  double share() const { return of_ns > 0 ? static_cast<double>(time_ns) / static_cast<double>(of_ns) : 0; }
};

/// What a rank's calls took, against the same calls on the other ranks: the n-th call of a collective in a group. The
/// shortest one came last and waited for nobody, so it is the transfer; what others took longer, they waited. Needs no
/// common clock. Calls that do not say their group, or in which only one rank was traced, stay unmatched.
struct WaitingTimes {
  std::int64_t matched_calls = 0;    ///< Calls that at least two of the ranks were traced in.
  std::int64_t unmatched_calls = 0;  ///< All other calls.
  std::int64_t transfer_ns = 0;      ///< The sum of the shortest of each matched call.
  std::int64_t waiting_ns = 0;       ///< What this rank took longer than that.
};

/// One rank, or the sum over all.
struct RankSummary {
  int rank = 0;
  std::string label;                      ///< "rank 3 (dp 1, tp 1)".
  TimeBasis basis = TimeBasis::none;      ///< What the times are made from.
  std::int64_t span_ns = 0;               ///< From the first to the last event that counts.
  std::int64_t computation_ns = 0;        ///< A union.
  std::int64_t communication_ns = 0;      ///< A union.
  std::int64_t communication_sum_ns = 0;  ///< A sum: more than the union where calls or messages ran at the same time.
  std::int64_t overlap_ns = 0;            ///< |communication ∩ computation|.
  std::int64_t copies_ns = 0;             ///< A union.
  std::int64_t idle_ns = 0;               ///< What none of the three covers.
  std::int64_t kernels = 0;               ///< Events of class computation, or host operators without a device.
  std::int64_t collective_calls = 0;
  std::int64_t transfers = 0;               ///< Posted messages, until they were waited for: in the times, no calls.
  OptimizerShare optimizer_device;          ///< By the ranges on the device.
  OptimizerShare optimizer_host;            ///< By the ranges on the host.
  WaitingTimes waiting;                     ///< Compared with the other ranks.
  std::int64_t steps = 0;                   ///< 0 where none was found.
  std::string steps_from;                   ///< What was counted as a step; "" where none was found.
  std::vector<CollectiveLine> collectives;  ///< A line for each collective, type and group.

  /// overlap_ns / communication_ns; nothing without communication.
  std::optional<double> overlap_share() const;
};

/// One of the times of a rank: where it is kept, and what outputs call it. Lists of them go through kRankTimes.
struct RankTime {
  std::int64_t RankSummary::*ns;  ///< In nanoseconds.
  const char* key;                ///< The name in JSON: "communication_sum_ms".
  const char* heading;            ///< The column's, where ranks are rows; nullptr: not shown there.
};
/// They stand in the order of all outputs.
constexpr std::array<RankTime, 7> kRankTimes = {{{&RankSummary::span_ns, "span_ms", "span"},
                                                 {&RankSummary::computation_ns, "computation_ms", "computation"},
                                                 {&RankSummary::communication_ns, "communication_ms", "communication"},
                                                 {&RankSummary::communication_sum_ns, "communication_sum_ms", nullptr},
                                                 {&RankSummary::overlap_ns, "overlap_ms", "overlap"},
                                                 {&RankSummary::copies_ns, "copies_ms", "copies"},
                                                 {&RankSummary::idle_ns, "idle_ms", "idle"}}};

/// What was counted and what was not, of all files together.
struct CountedEvents {
  std::array<std::int64_t, kEventClasses> of_class{};  ///< [EventClass].
  std::map<std::string, std::int64_t> left_out;        ///< Why → events.

  /// Those of one class.
  std::int64_t of(EventClass event_class) const { return of_class[static_cast<std::size_t>(event_class)]; }
};

/// All that is computed from the traces of one run.
struct Summary {
  std::vector<std::string> paths;
  TraceDialect dialect = TraceDialect::pytorch;  ///< Who wrote them.
  std::string backend;                           ///< "nccl", "gloo", or "" where it is not said.
  std::string title;                             ///< The lesson's name, or "".
  int world_size = 0;                            ///< 0: not said.
  std::vector<RankSummary> ranks;                ///< In ascending order.
  RankSummary together;                          ///< Sums over the ranks; of steps, the most of one rank.
  CountedEvents counted;                         ///< What all figures are made of, and what is in none.
  std::vector<std::string> notes;  ///< Sentences on what is missing, and on what must not be read out of it.
};

/// Adds up one run: files of different ranks, or one file with all of them (as read_traces gives them).
Summary summarize(const std::vector<TraceFile>& files);

}  // namespace muonwalk::sim
