#include "sim/analyser/trace_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/analyser/event_class.hpp"
#include "sim/analyser/waiting_times.hpp"

namespace muonwalk::sim {
namespace {

void add_optional(std::optional<std::int64_t>& sum, std::optional<std::int64_t> more) {
  sum = sum && more ? std::optional<std::int64_t>(*sum + *more) : std::nullopt;
}

std::optional<std::int64_t> if_known(std::int64_t value) {
  return value < 0 ? std::nullopt : std::optional<std::int64_t>(value);
}

bool same_line(const CollectiveLine& a, const CollectiveLine& b) {
  return std::tie(a.collective, a.type, a.group, a.group_size) == std::tie(b.collective, b.type, b.group, b.group_size);
}

// Adds a line, or a single call, to the line of its kind.
void add_line(std::vector<CollectiveLine>& lines, const CollectiveLine& more) {
  auto line =
      std::find_if(lines.begin(), lines.end(), [&](const CollectiveLine& each) { return same_line(each, more); });
  if (line == lines.end()) {
    lines.push_back(more);
    return;
  }
  line->calls += more.calls;
  line->time_ns += more.time_ns;
  add_optional(line->message_bytes, more.message_bytes);
  add_optional(line->sent_bytes, more.sent_bytes);
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
  const auto text = [&](std::int32_t name) { return name < 0 ? "" : file.names[static_cast<std::size_t>(name)]; };
  line.collective = call->collective;
  line.type = text(call->type);
  line.group = text(call->group);
  line.group_size = call->group_size;
  line.message_bytes = if_known(call->message_bytes);
  if (file.dialect == TraceDialect::muonwalk) line.sent_bytes = if_known(call->sent_bytes);
  return line;
}

// Ranges of a class that are named as the optimizer.
IntervalSet optimizer_ranges(const TraceFile& file, int rank, EventClass event_class, std::int64_t& ranges) {
  std::vector<Interval> intervals;
  for (const TraceEvent& event : file.events) {
    if (event.event_class != event_class || file.rank_of(event) != rank) continue;
    if (names_optimizer(file.dialect, file.name_of(event))) intervals.push_back({event.begin_ns, event.end_ns()});
  }
  ranges = static_cast<std::int64_t>(intervals.size());
  return IntervalSet(std::move(intervals));
}

std::int64_t host_span(const TraceFile& file, int rank) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
  for (const TraceEvent& event : file.events) {
    const bool host = event.event_class == EventClass::host_range || event.event_class == EventClass::host_operator;
    if (!host || file.rank_of(event) != rank) continue;
    begin = std::min(begin, event.begin_ns);
    end = std::max(end, event.end_ns());
  }
  return end > begin ? end - begin : 0;
}

// On the device, ranges are drawn around kernels; where there is none, the program's own ranges are the time itself.
void add_optimizer(const TraceFile& file, int rank, const RankTimes& times, RankSummary& summary) {
  const bool device = times.basis == TimeBasis::device;
  if (times.basis != TimeBasis::none) {
    OptimizerShare& share = summary.optimizer_device;
    const IntervalSet ranges =
        optimizer_ranges(file, rank, device ? EventClass::device_range : EventClass::host_range, share.ranges);
    share.time_ns = ranges.length();
    share.communication_ns = intersected(ranges, times.communication).length();
    if (share.ranges > 0) share.of_ns = summary.span_ns;
  }
  if (device || times.basis == TimeBasis::none) {
    OptimizerShare& share = summary.optimizer_host;
    share.time_ns = optimizer_ranges(file, rank, EventClass::host_range, share.ranges).length();
    if (share.ranges > 0) share.of_ns = host_span(file, rank);
  }
}

void add_steps(const TraceFile& file, int rank, RankSummary& summary) {
  std::int64_t profiled = 0, optimized = 0, recorded = 0;
  for (const TraceEvent& event : file.events) {
    if (file.rank_of(event) != rank) continue;
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
  summary.span_ns = times.end_ns - times.begin_ns;
  summary.computation_ns = times.computation.length();
  summary.communication_ns = times.communication.length();
  summary.overlap_ns = intersected(times.computation, times.communication).length();
  summary.copies_ns = times.copies.length();
  summary.idle_ns = summary.span_ns - united(united(times.computation, times.communication), times.copies).length();
  const EventClass computing = times.basis == TimeBasis::host ? EventClass::host_operator : EventClass::computation;
  for (const TraceEvent& event : file.events) {
    if (file.rank_of(event) != rank) continue;
    if (event.event_class == computing) ++summary.kernels;
    if (event.event_class != communication_class(times.basis)) continue;
    ++summary.collective_calls;
    summary.communication_sum_ns += event.duration_ns;
    add_line(summary.collectives, line_of_call(file, event));
  }
  add_optimizer(file, rank, times, summary);
  add_steps(file, rank, summary);
  return summary;
}

void add_share(OptimizerShare& sum, const OptimizerShare& more) {
  sum.ranges += more.ranges;
  sum.time_ns += more.time_ns;
  sum.of_ns += more.of_ns;
  sum.communication_ns += more.communication_ns;
}

void add_rank(RankSummary& sum, const RankSummary& rank) {
  sum.basis = rank.basis;
  sum.span_ns += rank.span_ns;
  sum.computation_ns += rank.computation_ns;
  sum.communication_ns += rank.communication_ns;
  sum.communication_sum_ns += rank.communication_sum_ns;
  sum.overlap_ns += rank.overlap_ns;
  sum.copies_ns += rank.copies_ns;
  sum.idle_ns += rank.idle_ns;
  sum.kernels += rank.kernels;
  sum.collective_calls += rank.collective_calls;
  add_share(sum.optimizer_device, rank.optimizer_device);
  add_share(sum.optimizer_host, rank.optimizer_host);
  sum.waiting.matched_calls += rank.waiting.matched_calls;
  sum.waiting.unmatched_calls += rank.waiting.unmatched_calls;
  sum.waiting.transfer_ns += rank.waiting.transfer_ns;
  sum.waiting.waiting_ns += rank.waiting.waiting_ns;
  sum.steps = std::max(sum.steps, rank.steps);
  if (sum.steps_from.empty()) sum.steps_from = rank.steps_from;
  for (const CollectiveLine& line : rank.collectives) add_line(sum.collectives, line);
}

void count_events(const TraceFile& file, CountedEvents& counted) {
  for (const TraceEvent& event : file.events) ++counted.of_class[static_cast<std::size_t>(event.event_class)];
  for (const auto& [why, events] : file.left_out) counted.left_out[why] += events;
}

// What a reader must know before using the figures of a rank.
void add_notes_on_rank(const RankSummary& rank, std::vector<std::string>& notes) {
  if (rank.basis == TimeBasis::none) {
    notes.push_back(
        fmt::format("{} has 0 kernels and 0 collectives on the CPU: its span, computation, communication and idle time "
                    "can't be told; was the device's activity recorded?",
                    rank.label));
    return;
  }
  if (rank.basis == TimeBasis::host)
    notes.push_back(
        fmt::format("{} has 0 kernels: operators on the CPU are taken for computation, and Gloo's collectives for "
                    "communication.",
                    rank.label));
  if (rank.kernels == 0)
    notes.push_back(fmt::format("{} has 0 kernels that compute: nothing can be overlapped.", rank.label));
  if (rank.collective_calls == 0)
    notes.push_back(fmt::format("{} has no communication: there is no overlap to speak of.", rank.label));
  if (rank.communication_sum_ns != rank.communication_ns)
    notes.push_back(fmt::format(
        "{}: collectives run at the same time as others; their times add up to {:.2f} ms in {:.2f} ms of union.",
        rank.label, static_cast<double>(rank.communication_sum_ns) / 1e6,
        static_cast<double>(rank.communication_ns) / 1e6));
  std::int64_t unsized = 0;
  for (const CollectiveLine& line : rank.collectives)
    if (!line.message_bytes && line.collective != Collective::barrier) unsized += line.calls;
  if (unsized > 0)
    notes.push_back(
        fmt::format("{}: {} of {} collectives are in lines without a size in bytes: these have no bandwidth.",
                    rank.label, unsized, rank.collective_calls));
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
  const std::int64_t on_host = summary.counted.of_class[static_cast<std::size_t>(EventClass::host_collective)];
  if (on_host > 0 && summary.together.basis == TimeBasis::device)
    summary.notes.push_back(
        fmt::format("{} collectives ran on the CPU beside a device: they are not in the communication.", on_host));
}

}  // namespace

std::optional<double> CollectiveLine::algorithm_bandwidth() const {
  if (!message_bytes || time_ns <= 0 || *message_bytes <= 0) return std::nullopt;
  return static_cast<double>(*message_bytes) / static_cast<double>(time_ns);  // bytes per ns are GB/s
}

std::optional<double> CollectiveLine::bus_bandwidth() const {
  const auto algorithm = algorithm_bandwidth();
  if (!algorithm || group_size < 1 || bus_factor(collective, group_size) == 0) return std::nullopt;
  return *algorithm * bus_factor(collective, group_size);
}

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
  summary.matrices = files.front().matrices;
  const auto waiting = waiting_times(files, summary.notes);
  for (std::size_t f = 0; f < files.size(); ++f) {
    const TraceFile& file = files[f];
    summary.paths.push_back(file.path);
    summary.notes.insert(summary.notes.end(), file.notes.begin(), file.notes.end());
    count_events(file, summary.counted);
    for (std::size_t r = 0; r < file.ranks.size(); ++r) {
      summary.world_size = std::max(summary.world_size, file.ranks[r].world_size);
      summary.ranks.push_back(summarize_rank(file, static_cast<int>(r)));
      summary.ranks.back().waiting = waiting[f][r];
    }
  }
  std::sort(summary.ranks.begin(), summary.ranks.end(),
            [](const RankSummary& a, const RankSummary& b) { return a.rank < b.rank; });
  for (const RankSummary& rank : summary.ranks) add_rank(summary.together, rank);
  summary.together.label = "all ranks";
  add_notes(summary);
  return summary;
}

}  // namespace muonwalk::sim
