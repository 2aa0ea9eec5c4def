#include <fmt/format.h>

#include "sim/analyser/figure_table.hpp"
#include "sim/analyser/trace_text.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kUnknown = "–";

// Every rank, and where there are several, all of them.
std::vector<const RankSummary*> rows_of(const Summary& summary) {
  std::vector<const RankSummary*> rows;
  for (const RankSummary& rank : summary.ranks) rows.push_back(&rank);
  if (rows.size() > 1) rows.push_back(&summary.together);
  return rows;
}

std::vector<std::string> heading(const Summary& summary) {
  std::vector<std::string> lines = {left_and_right(
      "muonwalk-trace summary",
      fmt::format("{}{} · {} of {} ranks · {}", dialect_name(summary.dialect),
                  summary.backend.empty() ? "" : " · " + summary.backend, summary.ranks.size(),
                  summary.world_size > 0 ? std::to_string(summary.world_size) : "an unknown number of",
                  summary.together.steps > 0 ? fmt::format("{} steps", summary.together.steps) : "no steps found"))};
  if (!summary.title.empty()) lines.push_back("  " + summary.title);
  for (const std::string& path : summary.paths) lines.push_back("  " + path);
  return lines;
}

std::string basis_text(TimeBasis basis) {
  switch (basis) {
    case TimeBasis::device:
      return "kernels on the device";
    case TimeBasis::host:
      return "operators and Gloo's collectives on the CPU";
    case TimeBasis::recorded:
      return "what the lesson recorded";
    case TimeBasis::none:
      break;
  }
  return "nothing: there are no kernels";
}

std::vector<std::string> times(const Summary& summary) {
  Rows rows = {{fmt::format("time, ms"), "span", "computation", "communication", "overlap", "", "copies", "idle"}};
  for (const RankSummary* rank : rows_of(summary)) {
    const auto ms = [&](std::int64_t ns) {
      return rank->basis == TimeBasis::none ? std::string(kUnknown) : ms_text(ns);
    };
    rows.push_back({"  " + rank->label, ms(rank->span_ns), ms(rank->computation_ns), ms(rank->communication_ns),
                    ms(rank->overlap_ns), rank->overlap_share() ? percent_text(*rank->overlap_share()) : kUnknown,
                    ms(rank->copies_ns), ms(rank->idle_ns)});
  }
  std::vector<std::string> lines = figure_table(rows, 1);
  append(lines,
         paragraph(
             fmt::format(
                 "Counted: {}. Computation, communication and copies are unions of intervals; overlap is communication "
                 "during computation, and its share of communication; idle is what of the span none covers.{}",
                 basis_text(summary.together.basis),
                 summary.ranks.size() > 1 ? " The last row adds up the ranks, which ran at the same time." : ""),
             2, 2));
  return lines;
}

std::string bandwidth_text(std::optional<double> bandwidth) {
  return bandwidth ? fmt::format("{:.3f}", *bandwidth) : kUnknown;
}

std::vector<std::string> collectives(const Summary& summary) {
  if (summary.together.collectives.empty()) return {};
  bool sent = false;
  for (const CollectiveLine& line : summary.together.collectives) sent = sent || line.sent_bytes;
  std::vector<std::string> first = {"collectives", "type", "group", "calls", "message bytes"};
  if (sent) first.push_back("sent bytes");
  for (const char* name : {"sum, ms", "algbw", "busbw"}) first.push_back(name);
  Rows rows = {first};
  for (const CollectiveLine& line : summary.together.collectives) {
    const std::string group = line.group.empty() ? kUnknown : line.group;
    std::vector<std::string> row = {
        "  " + std::string(collective_text(line.collective)), line.type.empty() ? kUnknown : line.type,
        line.group_size > 0 && group.find(',') == std::string::npos ? fmt::format("{} × {}", group, line.group_size)
                                                                    : group,
        number_text(line.calls), line.message_bytes ? number_text(*line.message_bytes) : kUnknown};
    if (sent) row.push_back(line.sent_bytes ? number_text(*line.sent_bytes) : kUnknown);
    for (const std::string& cell :
         {ms_text(line.time_ns), bandwidth_text(line.algorithm_bandwidth()), bandwidth_text(line.bus_bandwidth())})
      row.push_back(cell);
    rows.push_back(row);
  }
  std::vector<std::string> lines = figure_table(rows, 3);
  append(lines,
         paragraph(
             fmt::format(
                 "Of {}: sums over calls, waiting included. Bandwidths are in GB/s (10⁹ bytes), as nccl-tests defines "
                 "them: message bytes over time, and that times 2(n−1)/n for all_reduce, (n−1)/n for all_gather, "
                 "reduce_scatter and all_to_all.",
                 summary.ranks.size() == 1 ? summary.ranks.front().label : "all ranks"),
             2, 2));
  return lines;
}

std::vector<std::string> waiting(const Summary& summary) {
  if (summary.together.waiting.matched_calls == 0) return {};
  Rows rows = {{"transfer and waiting, ms", "calls", "transfer", "waiting", "not matched"}};
  for (const RankSummary* rank : rows_of(summary)) {
    const WaitingTimes& times = rank->waiting;
    rows.push_back({"  " + rank->label, number_text(times.matched_calls), ms_text(times.transfer_ns),
                    ms_text(times.waiting_ns), number_text(times.unmatched_calls)});
  }
  std::vector<std::string> lines = figure_table(rows, 1);
  append(lines, paragraph("The same call on all ranks: the shortest is the transfer, for its rank came last and "
                          "waited for nobody; what "
                          "a rank took longer, it waited.",
                          2, 2));
  return lines;
}

std::vector<std::string> optimizer(const Summary& summary) {
  Rows rows = {{"optimizer, ms", "where", "ranges", "time", "of", "share", "communication in it"}};
  for (const RankSummary* rank : rows_of(summary)) {
    const auto row = [&](const char* where, const OptimizerShare& share, bool device) {
      if (share.ranges == 0) return;
      rows.push_back({"  " + rank->label, where, number_text(share.ranges), ms_text(share.time_ns),
                      ms_text(share.of_ns), percent_text(share.share()),
                      device ? ms_text(share.communication_ns) : kUnknown});
    };
    row(rank->basis == TimeBasis::device ? "device" : "rank", rank->optimizer_device, true);
    row("host", rank->optimizer_host, false);
  }
  if (rows.size() == 1)
    return paragraph(
        "optimizer: no range is named as the optimizer (Optimizer.step#… in PyTorch, optimizer… in lessons), so its "
        "share is not known.",
        0, 2);
  std::vector<std::string> lines = figure_table(rows, 2);
  if (summary.together.basis == TimeBasis::device)
    append(lines, paragraph("On the device: ranges Optimizer.step# of the span. On the host: the time to start that "
                            "work, of the time from "
                            "its first to its last range or operator; it is no part of the device's time.",
                            2, 2));
  return lines;
}

std::vector<std::string> counted(const Summary& summary) {
  Rows rows = {{"events", "", ""}};
  const TimeBasis basis = summary.together.basis;
  for (int c = 0; c < kEventClasses; ++c) {
    const EventClass event_class = static_cast<EventClass>(c);
    const std::int64_t events = summary.counted.of_class[static_cast<std::size_t>(c)];
    if (events == 0) continue;
    const bool timed = event_class == EventClass::computation || event_class == EventClass::copy ||
                       event_class == communication_class(basis) ||
                       (basis == TimeBasis::host && event_class == EventClass::host_operator);
    rows.push_back({"  " + std::string(event_class_name(event_class)), number_text(events),
                    timed                             ? "counted as time"
                    : event_class == EventClass::step ? "counted as steps"
                    : event_class == EventClass::device_range || event_class == EventClass::host_range
                        ? "the optimizer and steps only: around other events, whose time they repeat"
                        : "in no time: they start work, which is there itself"});
  }
  for (const auto& [why, events] : summary.counted.left_out) rows.push_back({"  left out", number_text(events), why});
  std::vector<std::string> lines;
  // The text at the end begins at the left, unlike numbers.
  Rows numbers;
  for (const auto& row : rows) numbers.push_back({row[0], row[1]});
  const std::vector<std::string> begins = figure_table(numbers, 1);
  int width = 0;
  for (const std::string& begin : begins) width = std::max(width, text_width(begin));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string begin = begins[i] + std::string(static_cast<std::size_t>(width - text_width(begins[i])) + 2, ' ');
    if (rows[i][2].empty())
      lines.push_back(begins[i]);
    else
      for (const std::string& line : wrap_text(rows[i][2], 0, kColumns - width - 2)) {
        lines.push_back(begin + line);
        begin.assign(begin.size(), ' ');  // only ASCII: classes and counts
      }
  }
  return lines;
}

}  // namespace

std::vector<std::string> summary_text(const Summary& summary) {
  std::vector<std::string> lines = heading(summary);
  for (const auto& part :
       {times(summary), collectives(summary), waiting(summary), optimizer(summary), counted(summary)}) {
    if (part.empty()) continue;
    lines.push_back("");
    append(lines, part);
  }
  if (!summary.notes.empty()) lines.insert(lines.end(), {"", "notes"});
  for (const std::string& note : summary.notes) append(lines, paragraph(note, 2, 4));
  return lines;
}

}  // namespace muonwalk::sim
