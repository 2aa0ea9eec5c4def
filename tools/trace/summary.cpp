#include "tools/trace/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Gloo's collectives are operators, too, and so are the calls that start a collective: they compute nothing.
bool computes(const TraceFile& file, const TraceEvent& event) {
  const std::string& name = file.name_of(event);
  return name.rfind("c10d::", 0) != 0 && name != "record_param_comms";
}

// The time that an event counts into, by the basis of its rank's times.
enum class CountedAs { computation, communication, copy, nothing };
CountedAs counted_as(const TraceFile& file, const TraceEvent& event, TimeBasis basis) {
  if (basis == TimeBasis::none) return CountedAs::nothing;
  if (event.event_class == communication_class(basis)) return CountedAs::communication;
  if (event.event_class == EventClass::transfer) return CountedAs::communication;
  if (event.event_class == EventClass::copy) return CountedAs::copy;
  if (basis != TimeBasis::host)
    return event.event_class == EventClass::computation ? CountedAs::computation : CountedAs::nothing;
  return event.event_class == EventClass::host_operator && computes(file, event) ? CountedAs::computation
                                                                                 : CountedAs::nothing;
}

void add_optional(std::optional<std::int64_t>& sum, std::optional<std::int64_t> more) {
  sum = sum && more ? std::optional<std::int64_t>(*sum + *more) : std::nullopt;
}

std::optional<double> as_double(std::optional<std::int64_t> value, double unit = 1) {
  return value ? std::optional<double>(static_cast<double>(*value) / unit) : std::nullopt;
}

std::optional<std::int64_t> if_known(std::int64_t value) {
  return value < 0 ? std::nullopt : std::optional<std::int64_t>(value);
}

// Where the line of a kind stands: the collective, type, group and its size.
using LinePlaces = std::map<std::tuple<Collective, std::string, std::string, int>, std::size_t>;

// Adds a line, or a single call, to the line of its kind.
void add_line(std::vector<CollectiveLine>& lines, LinePlaces& places, const CollectiveLine& more) {
  const auto [place, first] =
      places.try_emplace({more.collective, more.type, more.group, more.group_size}, lines.size());
  if (first)
    lines.push_back(more);
  else
    lines[place->second].add(more);
}

CollectiveLine line_of_call(const TraceFile& file, const TraceEvent& event) {
  CollectiveLine line;
  line.calls = 1;
  line.time_ns = event.duration_ns;
  const CollectiveCall* call = file.call_of(event);
  if (call == nullptr) {
    line.collective = collective_of(file.name_of(event));
    return line;
  }
  line.collective = call->collective;
  line.type = file.text_of(call->type);
  line.group = file.text_of(call->group);
  line.group_size = call->group_size;
  line.message_bytes = if_known(call->message_bytes);
  if (file.dialect == TraceDialect::muonwalk) line.sent_bytes = if_known(call->sent_bytes);
  return line;
}

std::int64_t host_span(const TraceFile& file, int rank) {
  const Interval span = extent(file.events_of(rank), [](const TraceEvent& event) {
    return event.event_class == EventClass::host_range || event.event_class == EventClass::host_operator;
  });
  return span.end - span.begin;
}

// On the device, ranges are drawn around kernels; where there is none, the program's own ranges are the time itself.
void add_optimizer(const TraceFile& file, int rank, const RankTimes& times, RankSummary& summary) {
  const bool device = times.basis == TimeBasis::device;
  if (times.basis != TimeBasis::none) {
    OptimizerShare& share = summary.optimizer_device;
    std::vector<Interval> named =
        optimizer_ranges(file, rank, device ? EventClass::device_range : EventClass::host_range);
    // A lesson that draws no ranges within its steps names the steps themselves: "optimizer step 1".
    if (named.empty() && file.dialect == TraceDialect::muonwalk)
      named = optimizer_ranges(file, rank, EventClass::step);
    share.ranges = static_cast<std::int64_t>(named.size());
    const IntervalSet ranges(std::move(named));
    share.time_ns = ranges.length();
    share.communication_ns = intersected(ranges, times.communication).length();
    if (share.ranges > 0) share.of_ns = summary.span_ns;
  }
  if (device || times.basis == TimeBasis::none) {
    OptimizerShare& share = summary.optimizer_host;
    const std::vector<Interval> ranges = optimizer_ranges(file, rank, EventClass::host_range);
    share.ranges = static_cast<std::int64_t>(ranges.size());
    share.time_ns = IntervalSet(ranges).length();
    if (share.ranges > 0) share.of_ns = host_span(file, rank);
  }
}

void add_steps(const TraceFile& file, int rank, RankSummary& summary) {
  std::int64_t profiled = 0, optimized = 0, recorded = 0;
  for (const TraceEvent& event : file.events_of(rank)) {
    if (event.event_class == EventClass::step) ++recorded;
    if (event.event_class != EventClass::host_range || file.dialect == TraceDialect::muonwalk) continue;
    if (file.name_of(event).rfind("ProfilerStep#", 0) == 0) ++profiled;
    if (names_optimizer(file.dialect, file.name_of(event))) ++optimized;
  }
  const bool own = file.dialect == TraceDialect::muonwalk;
  summary.steps = own ? recorded : profiled > 0 ? profiled : optimized;
  if (summary.steps > 0)
    summary.steps_from = own            ? "step events"
                         : profiled > 0 ? "host ranges ProfilerStep#"
                                        : "host ranges Optimizer.step#";
}

RankSummary summarize_rank(const TraceFile& file, int rank) {
  RankSummary summary;
  summary.rank = file.ranks[static_cast<std::size_t>(rank)].rank;
  summary.label = file.ranks[static_cast<std::size_t>(rank)].label;
  const RankTimes times = rank_times(file, rank);
  summary.basis = times.basis;
  summary.span_ns = times.span.end - times.span.begin;
  summary.computation_ns = times.computation.length();
  summary.communication_ns = times.communication.length();
  summary.overlap_ns = intersected(times.computation, times.communication).length();
  summary.copies_ns = times.copies.length();
  summary.idle_ns = summary.span_ns - united(united(times.computation, times.communication), times.copies).length();
  LinePlaces places;
  const EventClass computing = times.basis == TimeBasis::host ? EventClass::host_operator : EventClass::computation;
  for (const TraceEvent& event : file.events_of(rank)) {
    if (event.event_class == computing) ++summary.kernels;
    if (event.event_class == EventClass::transfer) {
      ++summary.transfers;
      summary.communication_sum_ns += event.duration_ns;
    }
    if (event.event_class != communication_class(times.basis)) continue;
    ++summary.collective_calls;
    summary.communication_sum_ns += event.duration_ns;
    add_line(summary.collectives, places, line_of_call(file, event));
  }
  add_optimizer(file, rank, times, summary);
  add_steps(file, rank, summary);
  return summary;
}

// One call on one rank.
struct RankCall {
  WaitingTimes* of_rank;
  std::int64_t duration_ns;
  std::int64_t message_bytes;
};

// The collective, the ranks of the group and the group's name; and for each rank's n-th call of it, all ranks' n-th.
using CallKey = std::tuple<Collective, std::string, std::string>;
using MatchedCalls = std::map<CallKey, std::vector<std::vector<RankCall>>>;

// Adds the calls of a file; `ranks` are the summaries of its ranks.
void add_calls(const TraceFile& file, RankSummary* ranks, MatchedCalls& calls) {
  std::map<std::pair<CallKey, int>, std::size_t> made;  // (key, rank) → calls so far
  for (const TraceEvent& event : file.events) {
    const int rank = event.rank;
    if (event.event_class != communication_class(ranks[rank].basis)) continue;
    WaitingTimes& of_rank = ranks[rank].waiting;
    const CollectiveCall* call = file.call_of(event);
    // A message from one rank to another is not a call of all: its receiver waits by design.
    const bool comparable = call != nullptr && call->group >= 0 && call->collective != Collective::send &&
                            call->collective != Collective::recv && call->collective != Collective::send_recv;
    if (!comparable) {
      ++of_rank.unmatched_calls;
      continue;
    }
    const CallKey key{call->collective, file.text_of(call->group), file.text_of(call->group_name)};
    const std::size_t n = made[{key, rank}]++;
    auto& of_key = calls[key];
    if (of_key.size() <= n) of_key.resize(n + 1);
    of_key[n].push_back({&of_rank, event.duration_ns, call->message_bytes});
  }
}

// Tells transfer from waiting; notes the calls that some ranks made and others of the group did not.
void split_waiting(const MatchedCalls& calls, std::vector<std::string>& notes) {
  for (const auto& [key, of_key] : calls) {
    const std::size_t ranks = of_key.front().size();
    std::int64_t uneven = 0, unequal = 0;
    for (const std::vector<RankCall>& same : of_key) {
      if (same.size() < ranks) ++uneven;
      std::int64_t shortest = same.front().duration_ns;
      for (const RankCall& call : same) {
        shortest = std::min(shortest, call.duration_ns);
        if (call.message_bytes != same.front().message_bytes) ++unequal;
      }
      for (const RankCall& call : same) {
        if (same.size() < 2) {
          ++call.of_rank->unmatched_calls;
          continue;
        }
        ++call.of_rank->matched_calls;
        call.of_rank->transfer_ns += shortest;
        call.of_rank->waiting_ns += call.duration_ns - shortest;
      }
    }
    const std::string what =
        fmt::format("{} in group {}", collective_text(std::get<0>(key)), visible_name(std::get<1>(key)));
    if (uneven > 0)
      notes.push_back(fmt::format(
          "Not all ranks were traced in the same calls of {}: some ranks lack {} of them, so the n-th call of one "
          "rank may be set beside another call of the next.",
          what, uneven));
    if (unequal > 0)
      notes.push_back(fmt::format("Ranks disagree on the size of {} calls of {}: these traces may not be of one run.",
                                  unequal, what));
  }
}

void add_share(OptimizerShare& sum, const OptimizerShare& more) {
  sum.ranges += more.ranges;
  sum.time_ns += more.time_ns;
  sum.of_ns += more.of_ns;
  sum.communication_ns += more.communication_ns;
}

void add_rank(RankSummary& sum, LinePlaces& places, const RankSummary& rank) {
  sum.basis = rank.basis;
  for (const RankTime& time : kRankTimes) sum.*time.ns += rank.*time.ns;
  sum.kernels += rank.kernels;
  sum.collective_calls += rank.collective_calls;
  sum.transfers += rank.transfers;
  add_share(sum.optimizer_device, rank.optimizer_device);
  add_share(sum.optimizer_host, rank.optimizer_host);
  sum.waiting.matched_calls += rank.waiting.matched_calls;
  sum.waiting.unmatched_calls += rank.waiting.unmatched_calls;
  sum.waiting.transfer_ns += rank.waiting.transfer_ns;
  sum.waiting.waiting_ns += rank.waiting.waiting_ns;
  sum.steps = std::max(sum.steps, rank.steps);
  if (sum.steps_from.empty()) sum.steps_from = rank.steps_from;
  for (const CollectiveLine& line : rank.collectives) add_line(sum.collectives, places, line);
}

// What a reader must know before using the figures of a rank.
void add_notes_on_rank(const RankSummary& rank, std::vector<std::string>& notes) {
  if (rank.basis == TimeBasis::none) {
    notes.push_back(
        fmt::format("{} has 0 kernels and 0 collectives on the CPU: its span, computation, communication and idle time "
                    "can't be told; was the device's activity recorded?",
                    visible_name(rank.label)));
    return;
  }
  if (rank.basis == TimeBasis::host)
    notes.push_back(
        fmt::format("{} has 0 kernels: operators on the CPU are taken for computation, and Gloo's collectives for "
                    "communication.",
                    visible_name(rank.label)));
  if (rank.kernels == 0)
    notes.push_back(fmt::format("{} has 0 kernels that compute: nothing can be overlapped.", visible_name(rank.label)));
  if (rank.collective_calls == 0)
    notes.push_back(fmt::format("{} has no communication: there is no overlap to speak of.", visible_name(rank.label)));
  if (rank.communication_sum_ns != rank.communication_ns)
    notes.push_back(fmt::format(
        "{}: {} run at the same time as others; their times add up to {:.2f} ms in {:.2f} ms of union.",
        visible_name(rank.label), rank.transfers > 0 ? "calls and posted messages" : "collectives",
        static_cast<double>(rank.communication_sum_ns) / 1e6, static_cast<double>(rank.communication_ns) / 1e6));
  std::int64_t unsized = 0;
  for (const CollectiveLine& line : rank.collectives)
    if (!line.message_bytes && line.collective != Collective::barrier) unsized += line.calls;
  if (unsized > 0)
    notes.push_back(
        fmt::format("{}: {} of {} collectives are in lines without a size in bytes: these have no bandwidth.",
                    visible_name(rank.label), unsized, rank.collective_calls));
}

void add_notes(Summary& summary) {
  for (const RankSummary& rank : summary.ranks) add_notes_on_rank(rank, summary.notes);
  if (summary.ranks.size() == 1 && summary.world_size != 1)
    summary.notes.push_back(
        "One rank only: a call's time is its transfer and the waiting for the other ranks together, and they can't "
        "be told apart.");
  else if (summary.world_size > 0 && static_cast<int>(summary.ranks.size()) < summary.world_size)
    summary.notes.push_back(fmt::format("{} of {} ranks only: a call is set beside the same call of these alone.",
                                        summary.ranks.size(), summary.world_size));
  if (summary.together.steps == 0) summary.notes.push_back("No steps were found: nothing can be given per step.");
  std::int64_t damaged = 0;
  for (const auto& [why, events] : summary.counted.left_out)
    if (why.rfind("damaged", 0) == 0) damaged += events;
  if (damaged > 0)
    summary.notes.push_back(fmt::format("{} damaged and in no figure: the figures may be too small.",
                                        damaged == 1 ? "One event is" : fmt::format("{} events are", damaged)));
  const std::int64_t on_host = summary.counted.of(EventClass::host_collective);
  if (on_host > 0 && summary.together.basis == TimeBasis::device)
    summary.notes.push_back(
        fmt::format("{} collectives ran on the CPU beside a device: they are not in the communication.", on_host));
}

}  // namespace

std::vector<Interval> optimizer_ranges(const TraceFile& file, int rank, EventClass event_class) {
  std::vector<Interval> ranges;
  for (const TraceEvent& event : file.events_of(rank))
    if (event.event_class == event_class && names_optimizer(file.dialect, file.name_of(event)))
      ranges.push_back({event.begin_ns, event.end_ns()});
  return ranges;
}

TimeBasis time_basis(const TraceFile& file, int rank) {
  bool collectives = false;
  for (const TraceEvent& event : file.events_of(rank)) {
    if (event.event_class == EventClass::computation || event.event_class == EventClass::communication ||
        event.event_class == EventClass::copy)
      return file.dialect == TraceDialect::muonwalk ? TimeBasis::recorded : TimeBasis::device;
    collectives = collectives || event.event_class == EventClass::host_collective;
  }
  return collectives ? TimeBasis::host : TimeBasis::none;
}

EventClass communication_class(TimeBasis basis) {
  return basis == TimeBasis::host ? EventClass::host_collective : EventClass::communication;
}

RankTimes rank_times(const TraceFile& file, int rank) {
  RankTimes times;
  times.basis = time_basis(file, rank);
  const TraceFile::Events events = file.events_of(rank);
  const auto kind_of = [&](const TraceEvent& event) { return counted_as(file, event, times.basis); };
  std::array<std::vector<Interval>, static_cast<std::size_t>(CountedAs::nothing) + 1> intervals;
  for (const TraceEvent& event : events)
    intervals[static_cast<std::size_t>(kind_of(event))].push_back({event.begin_ns, event.end_ns()});
  const auto set_of = [&](CountedAs kind) { return IntervalSet(std::move(intervals[static_cast<std::size_t>(kind)])); };
  times.computation = set_of(CountedAs::computation);
  times.communication = set_of(CountedAs::communication);
  times.copies = set_of(CountedAs::copy);
  times.span = extent(events, [&](const TraceEvent& event) { return kind_of(event) != CountedAs::nothing; });
  return times;
}

void CollectiveLine::add(const CollectiveLine& more) {
  calls += more.calls;
  time_ns += more.time_ns;
  add_optional(message_bytes, more.message_bytes);
  add_optional(sent_bytes, more.sent_bytes);
}

std::optional<double> CollectiveLine::algorithm_bandwidth() const {
  if (!message_bytes || time_ns <= 0 || *message_bytes <= 0) return std::nullopt;
  return static_cast<double>(*message_bytes) / static_cast<double>(time_ns);  // bytes per ns are GB/s
}

std::optional<double> CollectiveLine::bus_bandwidth() const {
  const auto algorithm = algorithm_bandwidth();
  if (!algorithm || group_size < 1 || bus_factor(collective, group_size) == 0) return std::nullopt;
  return *algorithm * bus_factor(collective, group_size);
}

const std::array<CollectiveFigure, 6> kCollectiveFigures = {
    {{"calls", "calls", "", [](const CollectiveLine& line) { return as_double(line.calls); }},
     {"time_ms", "sum", "ms", [](const CollectiveLine& line) { return as_double(line.time_ns, 1e6); }},
     {"message_bytes", "message bytes", "bytes",
      [](const CollectiveLine& line) { return as_double(line.message_bytes); }},
     {"sent_bytes", "sent bytes", "bytes", [](const CollectiveLine& line) { return as_double(line.sent_bytes); }},
     {"algbw", "algbw", "GB/s", [](const CollectiveLine& line) { return line.algorithm_bandwidth(); }},
     {"busbw", "busbw", "GB/s", [](const CollectiveLine& line) { return line.bus_bandwidth(); }}}};

std::optional<double> RankSummary::overlap_share() const {
  if (communication_ns <= 0) return std::nullopt;
  return static_cast<double>(overlap_ns) / static_cast<double>(communication_ns);
}

Summary summarize(const std::vector<TraceFile>& files) {
  Summary summary;
  if (files.empty()) return summary;
  summary.dialect = files.front().dialect;
  summary.backend = files.front().backend;
  summary.title = files.front().title;
  for (const TraceFile& file : files) {
    summary.paths.push_back(file.path);
    for (const TraceEvent& event : file.events) ++summary.counted.of_class[static_cast<std::size_t>(event.event_class)];
    for (const auto& [why, events] : file.left_out) summary.counted.left_out[why] += events;
    for (std::size_t r = 0; r < file.ranks.size(); ++r) {
      summary.world_size = std::max(summary.world_size, file.ranks[r].world_size);
      summary.ranks.push_back(summarize_rank(file, static_cast<int>(r)));
    }
  }
  MatchedCalls calls;
  RankSummary* ranks = summary.ranks.data();
  for (const TraceFile& file : files) {
    add_calls(file, ranks, calls);
    ranks += file.ranks.size();
  }
  split_waiting(calls, summary.notes);
  for (const TraceFile& file : files) append(summary.notes, file.notes);
  std::sort(summary.ranks.begin(), summary.ranks.end(),
            [](const RankSummary& a, const RankSummary& b) { return a.rank < b.rank; });
  LinePlaces places;
  for (const RankSummary& rank : summary.ranks) add_rank(summary.together, places, rank);
  summary.together.label = "all ranks";
  // Without the times of one of them, there is no sum of all.
  for (const RankSummary& rank : summary.ranks)
    if (rank.basis == TimeBasis::none) summary.together.basis = TimeBasis::none;
  add_notes(summary);
  return summary;
}

}  // namespace muonwalk::sim
