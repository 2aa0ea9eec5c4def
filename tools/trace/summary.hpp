#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/trace/rank_times.hpp"

namespace muonwalk::sim {

/// All calls of one collective, with one element type, in one group.
struct CollectiveLine {
  Collective collective = Collective::other;  ///< which one
  std::string type;                           ///< "" where the trace does not say
  std::string group;                          ///< "[0, 2]" or "dp"; "" where the trace does not say
  int group_size = 0;                         ///< 0 where the trace does not say
  std::int64_t calls = 0;                     ///< how many
  std::int64_t time_ns = 0;                   ///< the sum of the calls, waiting included
  std::optional<std::int64_t> message_bytes;  ///< the sum; nothing where any call does not say
  std::optional<std::int64_t> sent_bytes;     ///< the sum, as in the ledger; nothing where any call does not say

  /// GB/s (10⁹ bytes): message bytes per time, and that times bus_factor. Nothing without bytes, time, or group size.
  /// @{
  std::optional<double> algorithm_bandwidth() const;
  std::optional<double> bus_bandwidth() const;
  /// @}

  /// Adds the calls of another line: their number, time and bytes.
  void add(const CollectiveLine& more);
};

/// One of the figures of a CollectiveLine, and what outputs call it. Whatever lists them goes through
/// kCollectiveFigures.
struct CollectiveFigure {
  const char* key;                                             ///< in JSON
  const char* name;                                            ///< in CSV and in the text's headings
  const char* unit;                                            ///< "" for a count, "ms", "bytes", "GB/s"
  std::optional<double> (*value)(const CollectiveLine& line);  ///< nothing where it is not known
};
/// In the order of JSON, CSV and the page.
extern const std::array<CollectiveFigure, 6> kCollectiveFigures;

/// How long ranges named as the optimizer take, and of what.
struct OptimizerShare {
  std::int64_t ranges = 0;            ///< how many ranges were found; 0: nothing is known
  std::int64_t time_ns = 0;           ///< their union
  std::int64_t of_ns = 0;             ///< the span that the share is of
  std::int64_t communication_ns = 0;  ///< of time_ns, with a collective under way; 0 on the host
  /// From 0 to 1; 0 where nothing is known.
  double share() const { return of_ns > 0 ? static_cast<double>(time_ns) / static_cast<double>(of_ns) : 0; }
};

/// What a rank's calls took, against the same calls on the other ranks: the n-th call of a collective in a group. The
/// shortest one came last and waited for nobody, so it is the transfer; what others took longer, they waited. Needs no
/// common clock. Calls that do not say their group, or in which only one rank was traced, stay unmatched.
struct WaitingTimes {
  std::int64_t matched_calls = 0;    ///< calls that at least two of the ranks were traced in
  std::int64_t unmatched_calls = 0;  ///< the others
  std::int64_t transfer_ns = 0;      ///< of the matched calls, the shortest among the ranks
  std::int64_t waiting_ns = 0;       ///< what this rank took longer than the shortest
};

/// One rank, or the sum over all.
struct RankSummary {
  int rank = 0;                             ///< its number
  std::string label;                        ///< "rank 3 (dp 1, tp 1)"
  TimeBasis basis = TimeBasis::none;        ///< what its times are made from
  std::int64_t span_ns = 0;                 ///< from the first to the last event that counts
  std::int64_t computation_ns = 0;          ///< union
  std::int64_t communication_ns = 0;        ///< union
  std::int64_t communication_sum_ns = 0;    ///< sum: more than the union where calls or messages ran at the same time
  std::int64_t overlap_ns = 0;              ///< |communication ∩ computation|
  std::int64_t copies_ns = 0;               ///< union
  std::int64_t idle_ns = 0;                 ///< of the span, what none of the three covers
  std::int64_t kernels = 0;                 ///< events of class computation, or host operators without a device
  std::int64_t collective_calls = 0;        ///< of all lines
  std::int64_t transfers = 0;               ///< posted messages, until they were waited for: in the times, no calls
  OptimizerShare optimizer_device;          ///< by ranges on the device
  OptimizerShare optimizer_host;            ///< by ranges on the host
  WaitingTimes waiting;                     ///< against the other ranks
  std::int64_t steps = 0;                   ///< how many were counted
  std::string steps_from;                   ///< what was counted as a step; "" where none was found
  std::vector<CollectiveLine> collectives;  ///< a line for each collective, type and group

  /// overlap_ns / communication_ns; nothing without communication.
  std::optional<double> overlap_share() const;
};

/// One of the times of a rank: where it is kept, and what outputs call it. Whatever lists the times of a rank goes
/// through kRankTimes.
struct RankTime {
  std::int64_t RankSummary::*ns;  ///< nanoseconds
  const char* key;                ///< in JSON: "communication_sum_ms"
  const char* figure;             ///< among figures_of: "communication, sum"
  const char* per_step;           ///< among figures_of, per step; nullptr: not given
  const char* heading;            ///< of its column where ranks are rows; nullptr: not shown there
};
/// In the order of all outputs.
constexpr std::array<RankTime, 7> kRankTimes = {
    {{&RankSummary::span_ns, "span_ms", "span", "span, a step", "span"},
     {&RankSummary::computation_ns, "computation_ms", "computation", "computation, a step", "computation"},
     {&RankSummary::communication_ns, "communication_ms", "communication, union", nullptr, "communication"},
     {&RankSummary::communication_sum_ns, "communication_sum_ms", "communication, sum", "communication, sum, a step",
      nullptr},
     {&RankSummary::overlap_ns, "overlap_ms", "overlap", nullptr, "overlap"},
     {&RankSummary::copies_ns, "copies_ms", "copies", nullptr, "copies"},
     {&RankSummary::idle_ns, "idle_ms", "idle", nullptr, "idle"}}};

/// What was counted and what was not, of all files together.
struct CountedEvents {
  std::array<std::int64_t, kEventClasses> of_class{};  ///< [EventClass]
  std::map<std::string, std::int64_t> left_out;        ///< why → events

  /// Those of one class.
  std::int64_t of(EventClass event_class) const { return of_class[static_cast<std::size_t>(event_class)]; }
};

/// All that is computed from the traces of one run.
struct Summary {
  std::vector<std::string> paths;                ///< of the files
  TraceDialect dialect = TraceDialect::pytorch;  ///< who wrote them
  std::string backend;                           ///< "nccl", "gloo", or "" where it is not said
  std::string title;                             ///< the lesson's name, or ""
  int world_size = 0;                            ///< 0: not said
  std::vector<TracedMatrix> matrices;            ///< empty: not said
  std::vector<RankSummary> ranks;                ///< in ascending order
  RankSummary together;                          ///< sums over the ranks; of steps, the most of one rank
  CountedEvents counted;                         ///< what all figures are made of, and what is in none
  std::vector<std::string> notes;  ///< sentences on what is missing, and on what must not be read out of it
};

/// Adds up one run: files of different ranks, or one file with all of them (as read_traces gives them).
Summary summarize(const std::vector<TraceFile>& files);

}  // namespace muonwalk::sim
