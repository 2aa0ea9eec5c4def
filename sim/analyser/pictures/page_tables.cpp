#include "sim/analyser/pictures/page_tables.hpp"

#include <fmt/format.h>

#include <set>

#include "sim/analyser/event_class.hpp"
#include "sim/analyser/figure_table.hpp"
#include "sim/analyser/pictures/span_parts.hpp"
#include "sim/pictures/xml_text.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The first cell of a row is what the row is of; the others are its figures.
std::string row_html(const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    html += i == 0 ? "<th scope=\"row\">" + xml_text(cells[i]) + "</th>" : "<td>" + xml_text(cells[i]) + "</td>";
  return html + "</tr>\n";
}

std::string table_html(const char* id, const std::string& caption, const std::vector<std::string>& headings,
                       const std::string& rows) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{1}\"><table id=\"{0}\">\n"
      "<caption>{1}</caption>\n<thead><tr>",
      id, xml_text(caption));
  for (const std::string& heading : headings) html += "<th scope=\"col\">" + xml_text(heading) + "</th>";
  return html + "</tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::vector<std::string> span_cells(const std::string& heading, const RankSummary& rank) {
  std::vector<std::string> cells = {heading};
  if (rank.basis == TimeBasis::none) {
    cells.push_back("nothing that could be timed");
    return cells;
  }
  cells.push_back(ms_text(rank.span_ns) + " ms");
  for (const std::int64_t part : span_parts(rank)) cells.push_back(span_part_figures(part, rank.span_ns));
  cells.push_back(rank.overlap_share() ? percent_text(*rank.overlap_share()) : "no communication");
  return cells;
}

std::string bandwidth_text(std::optional<double> bandwidth) {
  return bandwidth ? fmt::format("{:.2f} GB/s", *bandwidth) : "not known";
}

std::vector<std::string> collective_cells(const std::string& heading, const CollectiveLine& line) {
  std::string group = line.group.empty() ? "not said" : line.group;
  if (line.group_size > 0) group += fmt::format(", {} ranks", line.group_size);
  return {heading,
          collective_text(line.collective),
          line.type.empty() ? "not said" : line.type,
          group,
          number_text(line.calls),
          ms_text(line.time_ns) + " ms",
          line.message_bytes ? bytes_text(*line.message_bytes) : "not said",
          line.sent_bytes ? bytes_text(*line.sent_bytes) : "not said",
          bandwidth_text(line.algorithm_bandwidth()),
          bandwidth_text(line.bus_bandwidth())};
}

std::string swatch(const std::string& style_class, const char* text) {
  return fmt::format("<li><span class=\"swatch {}\"></span>{}</li>\n", style_class, text);
}

std::string list_html(const char* id, const std::vector<std::string>& sentences) {
  std::string html = fmt::format("<ul id=\"{}\">\n", id);
  for (const std::string& sentence : sentences) html += "<li>" + xml_text(sentence) + "</li>\n";
  return html + "</ul>\n";
}

// What each figure of a rank is made from.
const char* basis_text(TimeBasis basis) {
  switch (basis) {
    case TimeBasis::device:
      return "Computation and communication are kernels on the device; ranges and the time to start kernels are not.";
    case TimeBasis::host:
      return "There are no kernels: operators on the CPU count as computation, Gloo's collectives as communication.";
    case TimeBasis::recorded:
      return "Computation and communication are what the lesson recorded, by the clock of the machine it ran on.";
    case TimeBasis::none:
      break;
  }
  return "There is nothing that could be timed.";
}

}  // namespace

std::string span_table(const TracePicture& picture) {
  std::vector<std::string> headings = {"rank", "span"};
  for (int part = 0; part < kSpanParts; ++part) headings.push_back(span_part_text(static_cast<SpanPart>(part)));
  headings.push_back("share of communication overlapped");
  std::string rows;
  for (const PictureRun& run : picture.runs) {
    for (const RankSummary& rank : run.summary.ranks)
      rows += row_html(span_cells(rank_heading(picture, run, rank.label), rank));
    if (run.summary.ranks.size() > 1)
      rows += row_html(
          span_cells(rank_heading(picture, run, run.summary.together.label + ", added up"), run.summary.together));
  }
  return table_html("figures", "Where the time of each rank goes", headings, rows);
}

std::string collectives_table(const TracePicture& picture) {
  std::string rows;
  for (const PictureRun& run : picture.runs)
    for (const RankSummary& rank : run.summary.ranks)
      for (const CollectiveLine& line : rank.collectives)
        rows += row_html(collective_cells(rank_heading(picture, run, rank.label), line));
  if (rows.empty()) return "<p>No collective was found.</p>\n";
  return table_html("collectives", "The calls of each rank; their times add up, waiting included",
                    {"rank", "collective", "type", "group", "calls", "time", "message", "sent", "algorithm bandwidth",
                     "bus bandwidth"},
                    rows);
}

std::string lanes_table(const TracePicture& picture) {
  std::string rows;
  for (const PictureRun& run : picture.runs) {
    for (const TimelineRank& rank : run.timeline.ranks) {
      for (const TimelineLane& lane : rank.lanes) {
        std::int64_t events = 0, slices = 0;
        const TimelineSlice* longest = nullptr;
        for (const TimelineRow& row : lane.rows) {
          for (const TimelineSlice& slice : row) {
            events += slice.events;
            ++slices;
            if (longest == nullptr || slice.duration_ns > longest->duration_ns) longest = &slice;
          }
        }
        rows += row_html({fmt::format("{}, {}", rank_heading(picture, run, rank.label), lane_kind_text(lane.kind)),
                          number_text(events), number_text(slices), slice_text(run.timeline, *longest)});
      }
    }
  }
  return table_html("lanes", "The lanes of the timeline", {"lane", "events", "drawn as", "the longest"}, rows);
}

std::string counted_list(const TracePicture& picture) {
  std::string html;
  for (const PictureRun& run : picture.runs) {
    const Summary& summary = run.summary;
    std::vector<std::string> sentences = {basis_text(summary.together.basis)};
    for (const std::string& path : summary.paths) sentences.push_back("Read: " + path);
    sentences.push_back(summary.world_size > 0
                            ? fmt::format("Ranks: {} of {}.", summary.ranks.size(), summary.world_size)
                            : fmt::format("Ranks: {}; of how many, the trace does not say.", summary.ranks.size()));
    for (int i = 0; i < kEventClasses; ++i) {
      const std::int64_t events = summary.counted.of_class[static_cast<std::size_t>(i)];
      if (events > 0)
        sentences.push_back(
            fmt::format("Events of class {}: {}", event_class_name(static_cast<EventClass>(i)), number_text(events)));
    }
    for (const auto& [why, events] : summary.counted.left_out)
      sentences.push_back(fmt::format("Left out: {} events ({})", number_text(events), why));
    sentences.insert(sentences.end(), summary.notes.begin(), summary.notes.end());
    if (picture.runs.size() > 1) html += fmt::format("<h3>{}: {}</h3>\n", run_letter(picture, run), xml_text(run.name));
    html += list_html(&run == &picture.runs.front() ? "counted" : "counted-of-the-other", sentences);
  }
  return html;
}

std::string warnings_list(const TracePicture& picture) {
  if (picture.warnings.empty()) return "";
  return "<h2>What keeps these runs from being compared</h2>\n" + list_html("warnings", picture.warnings);
}

std::string lane_legend(const TracePicture& picture) {
  std::set<LaneKind> kinds;
  for (const PictureLine& line : picture_lines(picture))
    if (line.row != nullptr) kinds.insert(line.kind);
  std::string html = "<ul class=\"legend\">\n";
  for (const LaneKind kind : kinds) html += swatch(fmt::format("lane{}", static_cast<int>(kind)), lane_kind_text(kind));
  return html + "</ul>\n";
}

std::string part_legend() {
  std::string html = "<ul class=\"legend\">\n";
  for (int part = 0; part < kSpanParts; ++part)
    html += swatch(fmt::format("part{}", part), span_part_text(static_cast<SpanPart>(part)));
  return html + "</ul>\n";
}

}  // namespace muonwalk::sim
