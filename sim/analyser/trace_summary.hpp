#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/analyser/event.hpp"
#include "sim/analyser/interval_set.hpp"

namespace muonwalk::sim {

/// What the times of a rank are made from.
enum class TimeBasis {
  device,    ///< kernels
  host,      ///< no device: operators on the CPU compute, Gloo communicates
  recorded,  ///< what a lesson recorded
  none       ///< neither kernels nor collectives on the CPU: no time can be told
};

/// What the times of a rank are made from, by the events that it has.
TimeBasis time_basis(const TraceFile& file, int rank);

/// The time that an event counts into.
enum class CountedAs { computation, communication, copy, nothing };

/// What an event of a rank counts as, by the basis of that rank's times.
CountedAs counted_as(const TraceFile& file, const TraceEvent& event, TimeBasis basis);

/// The moments in which a rank computes, communicates, copies; where nothing is known, all are empty.
struct RankTimes {
  TimeBasis basis = TimeBasis::none;  ///< what the times are made from
  /// When the rank did each.
  /// @{
  IntervalSet computation, communication, copies;
  /// @}
  std::int64_t begin_ns = 0;  ///< of the first of these events
  std::int64_t end_ns = 0;    ///< of the last one
};

/// The times of one rank (an index into TraceFile::ranks).
RankTimes rank_times(const TraceFile& file, int rank);

/// The class of events that the communication of a rank consists of: kernels, or where there is no device, host
/// collectives.
EventClass communication_class(TimeBasis basis);

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
};

/// How long ranges named as the optimizer take, and of what.
struct OptimizerShare {
  std::int64_t ranges = 0;            ///< how many ranges were found; 0: nothing is known
  std::int64_t time_ns = 0;           ///< their union
  std::int64_t of_ns = 0;             ///< the span that the share is of
  std::int64_t communication_ns = 0;  ///< of time_ns, with a collective under way; 0 on the host
  /// From 0 to 1; 0 where nothing is known.
  double share() const { return of_ns > 0 ? static_cast<double>(time_ns) / static_cast<double>(of_ns) : 0; }
};

/// What a rank's calls took, against the same calls on the other ranks.
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
  std::int64_t communication_sum_ns = 0;    ///< sum: more than the union where calls ran at the same time
  std::int64_t overlap_ns = 0;              ///< |communication ∩ computation|
  std::int64_t copies_ns = 0;               ///< union
  std::int64_t idle_ns = 0;                 ///< of the span, what none of the three covers
  std::int64_t kernels = 0;                 ///< events of class computation, or host operators without a device
  std::int64_t collective_calls = 0;        ///< of all lines
  OptimizerShare optimizer_device;          ///< by ranges on the device
  OptimizerShare optimizer_host;            ///< by ranges on the host
  WaitingTimes waiting;                     ///< against the other ranks
  std::int64_t steps = 0;                   ///< how many were counted
  std::string steps_from;                   ///< what was counted as a step; "" where none was found
  std::vector<CollectiveLine> collectives;  ///< a line for each collective, type and group

  /// overlap_ns / communication_ns; nothing without communication.
  std::optional<double> overlap_share() const;
};

/// What was counted and what was not, of all files together.
struct CountedEvents {
  std::array<std::int64_t, kEventClasses> of_class{};  ///< [EventClass]
  std::map<std::string, std::int64_t> left_out;        ///< why → events
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
