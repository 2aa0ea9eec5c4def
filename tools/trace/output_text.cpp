#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "tools/trace/output.hpp"

namespace muonwalk::sim {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kUnknown = "–";

std::string or_unknown(const std::string& text) { return text.empty() ? kUnknown : text; }

// A figure in its unit, without it.
std::string value_text(std::optional<double> value, const std::string& unit) {
  if (!value) return kUnknown;
  if (unit == "ms") return ms_text(static_cast<std::int64_t>(std::llround(*value * 1e6)));
  if (unit == "%") return percent_text(*value / 100);
  if (unit == "GB/s") return fmt::format("{:.3f}", *value);
  return *value == std::floor(*value) ? number_text(static_cast<long long>(*value)) : fmt::format("{:.1f}", *value);
}

// A table, and what there is to say of it.
Lines table_with(const Table& table, const std::string& words) {
  Lines lines = table.lines();
  append(lines, paragraph(words, 2, 2));
  return lines;
}

// Every rank, and where there are several, all of them.
std::vector<const RankSummary*> rows_of(const Summary& summary) {
  std::vector<const RankSummary*> rows;
  for (const RankSummary& rank : summary.ranks) rows.push_back(&rank);
  if (rows.size() > 1) rows.push_back(&summary.together);
  return rows;
}

std::string steps_text(const Summary& summary) {
  return summary.together.steps > 0 ? fmt::format("{} steps", summary.together.steps) : "no steps found";
}

Lines heading(const Summary& summary) {
  Lines lines = {left_and_right(
      "muonwalk-trace summary",
      fmt::format("{}{} · {} of {} ranks · {}", dialect_name(summary.dialect),
                  summary.backend.empty() ? "" : " · " + visible_name(summary.backend), summary.ranks.size(),
                  summary.world_size > 0 ? std::to_string(summary.world_size) : "an unknown number of",
                  steps_text(summary)))};
  if (!summary.title.empty()) lines.push_back("  " + visible_name(summary.title));
  for (const std::string& path : summary.paths) lines.push_back("  " + visible_name(path));
  return lines;
}

const char* basis_text(TimeBasis basis) {
  constexpr std::array<const char*, 4> kTexts = {"kernels on the device", "operators and Gloo's collectives on the CPU",
                                                 "what the lesson recorded", "nothing: there are no kernels"};
  return kTexts[static_cast<std::size_t>(basis)];
}

Lines times(const Summary& summary) {
  Table table({{"time, ms"}}, 2);
  for (const RankTime& time : kRankTimes) {
    if (time.heading != nullptr) table.column({time.heading, ms_text});
    if (time.ns == &RankSummary::overlap_ns) table.column({"", percent_text});
  }
  for (const RankSummary* rank : rows_of(summary)) {
    std::vector<Cell> cells = {visible_name(rank->label)};
    for (const RankTime& time : kRankTimes) {
      if (time.heading != nullptr)
        cells.push_back(rank->basis == TimeBasis::none ? Cell(std::nullopt) : Cell(rank->*time.ns));
      if (time.ns == &RankSummary::overlap_ns) cells.push_back(rank->overlap_share());
    }
    table.row(cells);
  }
  return table_with(
      table, fmt::format(
                 "Counted: {}. Computation, communication and copies are unions of intervals; overlap is communication "
                 "during computation, and its share of communication; idle is what of the span none covers.{}",
                 basis_text(summary.together.basis),
                 summary.ranks.size() > 1 ? " The last row adds up the ranks, which ran at the same time." : ""));
}

Lines collectives(const Summary& summary) {
  const std::vector<CollectiveLine>& all = summary.together.collectives;
  if (all.empty()) return {};
  const auto& [calls, sum, message_bytes, sent_bytes, algorithm_bandwidth, bus_bandwidth] = kCollectiveFigures;
  std::vector<const CollectiveFigure*> figures = {&calls, &message_bytes, &sum, &algorithm_bandwidth, &bus_bandwidth};
  if (std::any_of(all.begin(), all.end(), [](const CollectiveLine& line) { return line.sent_bytes.has_value(); }))
    figures.insert(figures.begin() + 2, &sent_bytes);
  Table table({{"collectives"}, {"type"}, {"group"}}, 2);
  for (const CollectiveFigure* figure : figures) table.column({figure == &sum ? "sum, ms" : figure->name, Side::right});
  for (const CollectiveLine& line : all) {
    const bool sized = line.group_size > 0 && line.group.find(',') == std::string::npos;
    std::vector<Cell> cells = {
        collective_text(line.collective), or_unknown(visible_name(line.type)),
        or_unknown(visible_name(line.group)) + (sized ? fmt::format(" × {}", line.group_size) : "")};
    for (const CollectiveFigure* figure : figures) cells.push_back(value_text(figure->value(line), figure->unit));
    table.row(cells);
  }
  return table_with(
      table,
      fmt::format("Of {}: sums over calls, waiting included. Bandwidths are in GB/s (10⁹ bytes), as nccl-tests defines "
                  "them: message bytes over time, and that times 2(n−1)/n for all_reduce, (n−1)/n for all_gather, "
                  "reduce_scatter and all_to_all.",
                  summary.ranks.size() == 1 ? visible_name(summary.ranks.front().label) : "all ranks"));
}

Lines waiting(const Summary& summary) {
  if (summary.together.waiting.matched_calls == 0) return {};
  Table table({{"transfer and waiting, ms"},
               {"calls", number_text},
               {"transfer", ms_text},
               {"waiting", ms_text},
               {"not matched", number_text}},
              2);
  for (const RankSummary* rank : rows_of(summary)) {
    const WaitingTimes& times = rank->waiting;
    table.row(
        {visible_name(rank->label), times.matched_calls, times.transfer_ns, times.waiting_ns, times.unmatched_calls});
  }
  return table_with(table,
                    "The same call on all ranks: the shortest is the transfer, for its rank came last and waited for "
                    "nobody; what a rank took longer, it waited.");
}

Lines optimizer(const Summary& summary) {
  if (summary.together.optimizer_device.ranges + summary.together.optimizer_host.ranges == 0)
    return paragraph(
        "optimizer: no range is named as the optimizer (Optimizer.step#… in PyTorch, optimizer… in lessons), so its "
        "share is not known.",
        0, 2);
  Table table({{"optimizer, ms"},
               {"where"},
               {"ranges", number_text},
               {"time", ms_text},
               {"of", ms_text},
               {"share", percent_text},
               {"communication in it", ms_text}},
              2);
  for (const RankSummary* rank : rows_of(summary)) {
    const auto row = [&](const char* where, const OptimizerShare& share, bool device) {
      if (share.ranges > 0)
        table.row({visible_name(rank->label), where, share.ranges, share.time_ns, share.of_ns, share.share(),
                   device ? Cell(share.communication_ns) : Cell(std::nullopt)});
    };
    row(rank->basis == TimeBasis::device ? "device" : "rank", rank->optimizer_device, true);
    row("host", rank->optimizer_host, false);
  }
  return summary.together.basis != TimeBasis::device
             ? table.lines()
             : table_with(table,
                          "On the device: ranges Optimizer.step# of the span. On the host: the time to start that "
                          "work, of the time from its first to its last range or operator; it is not part of the "
                          "device's time.");
}

// What became of the events of a class.
const char* use_text(EventClass event_class, TimeBasis basis) {
  if (event_class == EventClass::computation || event_class == EventClass::copy ||
      event_class == communication_class(basis) ||
      (basis == TimeBasis::host && event_class == EventClass::host_operator))
    return "counted as time";
  if (event_class == EventClass::step) return "counted as steps";
  if (event_class == EventClass::transfer)
    return "counted as time: from the post until the wait for it has returned; the calls for that are counted as well";
  return event_class == EventClass::device_range || event_class == EventClass::host_range
             ? "the optimizer and steps only: around other events, whose time they repeat"
             : "in no time: they start work, which is there itself";
}

Lines counted(const Summary& summary) {
  Table numbers({{"events"}, {"", number_text}}, 2);
  Lines uses = {""};
  for (int c = 0; c < kEventClasses; ++c) {
    const EventClass event_class = static_cast<EventClass>(c);
    if (summary.counted.of(event_class) == 0) continue;
    numbers.row({event_class_name(event_class), summary.counted.of(event_class)});
    uses.push_back(use_text(event_class, summary.together.basis));
  }
  for (const auto& [why, events] : summary.counted.left_out) {
    numbers.row({"left out", events});
    uses.push_back(why);
  }
  const Lines begins = numbers.lines();
  int width = 0;
  for (const std::string& begin : begins) width = std::max(width, text_width(begin));
  Lines lines = {begins[0]};
  for (std::size_t i = 1; i < begins.size(); ++i) {
    const Lines wrapped = wrap_text(uses[i], 0, kColumns - width - 2);
    for (const std::string& line : wrapped)
      lines.push_back(pad_right(&line == &wrapped.front() ? begins[i] : "", width + 2) + line);
  }
  return lines;
}

std::string number(std::optional<double> value, int decimals, const std::string& unit) {
  return value ? fixed_text(*value, decimals, unit) : kUnknown;
}

Lines claim_lines(const PublishedClaim& claim) {
  Table table({{claim.title},
               {"published", Side::right},
               {"found again", Side::right},
               {"", Side::right},
               {"corrected", Side::right}},
              2);
  for (const PublishedFigure& figure : claim.figures)
    table.row({figure.what, number(figure.published, figure.decimals, figure.unit),
               number(figure.recounted, figure.decimals, figure.unit),
               !figure.published      ? ""
               : figure.found_again() ? "✔"
                                      : "✘",
               number(figure.corrected, figure.corrected_decimals, figure.unit)});
  Lines lines = table.lines();
  append(lines, paragraph("published: " + claim.counted, 2, 4));
  for (const std::string& evidence : claim.evidence) append(lines, paragraph(evidence, 4, 6));
  append(lines, paragraph("corrected: " + claim.corrected, 2, 4));
  append(lines, paragraph(claim.differs, 2, 2));
  return lines;
}

}  // namespace

Lines summary_text(const Summary& summary) {
  Lines lines = heading(summary);
  for (const Lines& part :
       {times(summary), collectives(summary), waiting(summary), optimizer(summary), counted(summary)}) {
    if (part.empty()) continue;
    lines.push_back("");
    append(lines, part);
  }
  if (!summary.notes.empty()) append(lines, {"", "notes"});
  for (const std::string& note : summary.notes) append(lines, paragraph(note, 2, 4));
  return lines;
}

Lines published_text(const std::vector<PublishedClaim>& claims, const std::vector<std::string>& paths) {
  Lines lines = {"muonwalk-trace published"};
  append(lines,
         paragraph("Published: \"Distributed Muon: Field Notes & Reproducibility Artifacts\", Jen Wei, 2025.", 0, 0));
  for (const std::string& path : paths) lines.push_back("  " + visible_name(path));
  for (const PublishedClaim& claim : claims) {
    lines.push_back("");
    append(lines, claim_lines(claim));
  }
  const auto [figures, found] = found_again(claims);
  lines.push_back("");
  lines.push_back(
      left_and_right(fmt::format("check   {} of {} published figures come out of these traces", found, figures),
                     found == figures ? "✔" : "✘"));
  if (found != figures)
    append(lines, paragraph("These are not the published traces, or not in their order, Muon's before AdamW's: the "
                            "sentences above are about those alone.",
                            0, 0));
  append(lines,
         paragraph("Half the state memory, which was published too, can't be told from a trace: it is one buffer "
                   "against two by construction.",
                   0, 0));
  return lines;
}

}  // namespace muonwalk::sim
