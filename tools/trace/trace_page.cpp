#include "tools/trace/trace_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/replay/page_parts.hpp"
#include "sim/replay/page_texts.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

using nlohmann::json;

// A line of the picture: a heading, or a row of a lane.
struct PictureLine {
  std::string text;          // "rank 3 (dp 1, tp 1)", "communication"; "" below the first row of a lane
  std::string lane;          // whose row it is, in full: "rank 3 (dp 1, tp 1), communication"
  const TimelineRow* row;    // nullptr: a heading
  const Timeline* timeline;  // that the row is of
  LaneKind kind;             // of the lane
};

const char* span_part_text(SpanPart part) {
  constexpr std::array<const char*, kSpanParts> kTexts = {"computation alone", "overlap", "communication alone",
                                                          "copies alone", "idle"};
  return kTexts[static_cast<std::size_t>(part)];
}

Colour span_part_colour(SpanPart part) {
  constexpr std::array<Colour, kSpanParts> kFills = {parameter_colour(0), parameter_colour(2), parameter_colour(4),
                                                     parameter_colour(3), kPadding};
  return kFills[static_cast<std::size_t>(part)];
}

Colour lane_kind_colour(LaneKind kind) {
  const std::array<Colour, kLaneKinds> fills = {span_part_colour(SpanPart::computation_alone),
                                                span_part_colour(SpanPart::communication_alone),
                                                span_part_colour(SpanPart::copies_alone),
                                                parameter_colour(5),
                                                parameter_colour(7),
                                                parameter_colour(7),
                                                span_part_colour(SpanPart::communication_alone)};
  return fills[static_cast<std::size_t>(kind)];
}

char run_letter(const TracePicture& picture, const PictureRun& run) {
  return static_cast<char>('A' + (&run - picture.runs.data()));
}

std::string rank_heading(const TracePicture& picture, const PictureRun& run, const std::string& label) {
  return picture.runs.size() == 1 ? visible_name(label)
                                  : fmt::format("{} · {}", run_letter(picture, run), visible_name(label));
}

std::string picture_title(const TracePicture& picture) {
  if (picture.runs.size() == 1) return "Trace of " + picture.runs.front().name;
  std::string names;
  for (const PictureRun& run : picture.runs)
    names += fmt::format("{}{}: {}", names.empty() ? "" : " · ", run_letter(picture, run), run.name);
  return names;
}

// The lines from top to bottom: per rank a heading, and the rows of its lanes.
std::vector<PictureLine> picture_lines(const TracePicture& picture) {
  std::vector<PictureLine> lines;
  for (const PictureRun& run : picture.runs) {
    for (const TimelineRank& rank : run.timeline.ranks) {
      const std::string heading = rank_heading(picture, run, rank.label);
      lines.push_back({heading, heading, nullptr, &run.timeline, {}});
      for (const TimelineLane& lane : rank.lanes)
        for (const TimelineRow& row : lane.rows)
          lines.push_back({&row == &lane.rows.front() ? lane_kind_text(lane.kind) : "",
                           fmt::format("{}, {}", heading, lane_kind_text(lane.kind)), &row, &run.timeline, lane.kind});
    }
  }
  return lines;
}

// How many events there are, drawn as how many slices, and which are not drawn at all.
std::string drawn_text(const TracePicture& picture) {
  std::int64_t events = 0, drawn_as = 0;
  std::map<std::string, std::int64_t> not_drawn;
  for (const PictureRun& run : picture.runs) {
    events += run.timeline.events;
    drawn_as += run.timeline.slices();
    for (const auto& [which, many] : run.timeline.not_drawn) not_drawn[which] += many;
  }
  std::string text = drawn_as == events ? fmt::format("{} events, each drawn.", number_text(events))
                                        : fmt::format(
                                              "{} events, drawn as {}: neighbours that are too short to be "
                                              "told apart are drawn as one.",
                                              number_text(events), number_text(drawn_as));
  for (const auto& [which, many] : not_drawn) text += fmt::format(" Not drawn: {} {}.", number_text(many), which);
  return text;
}

// A slice in words: "ncclKernel, 12.34 ms from 5.67 ms, float32, group [0, 2], message 80 B".
std::string slice_text(const Timeline& timeline, const TimelineSlice& slice) {
  const auto text = [&](std::int32_t number) { return timeline.texts[static_cast<std::size_t>(number)]; };
  std::string words = slice.name >= 0 ? text(slice.name) : "events of several names";
  if (slice.events > 1) words = fmt::format("{} events: {}", slice.events, words);
  words += fmt::format(", {} ms from {} ms", ms_text(slice.duration_ns), ms_text(slice.begin_ns));
  if (slice.busy_ns != slice.duration_ns) words += fmt::format(", {} ms of it covered", ms_text(slice.busy_ns));
  if (slice.type >= 0) words += ", " + text(slice.type);
  if (slice.group >= 0) words += ", group " + text(slice.group);
  if (slice.message_bytes >= 0) words += ", message " + bytes_text(slice.message_bytes);
  if (slice.sent_bytes >= 0) words += ", sent " + bytes_text(slice.sent_bytes);
  return words;
}

// ── The tables: they say all that the pictures show, and need no script.

std::string span_row(const std::string& heading, const RankSummary& rank) {
  if (rank.basis == TimeBasis::none) return html_row({heading, "nothing that could be timed"});
  std::vector<std::string> cells = {heading, ms_text(rank.span_ns) + " ms"};
  for (const std::int64_t part : span_parts(rank)) cells.push_back(span_part_figures(part, rank.span_ns));
  cells.push_back(rank.overlap_share() ? percent_text(*rank.overlap_share()) : "no communication");
  return html_row(cells);
}

// Where the time of each rank goes: a row per rank, one for all of them, with the figures of the bars.
std::string span_table(const TracePicture& picture) {
  std::vector<std::string> headings = {"rank", "span"};
  for (int part = 0; part < kSpanParts; ++part) headings.push_back(span_part_text(static_cast<SpanPart>(part)));
  headings.push_back("share of communication overlapped");
  std::string rows;
  for (const PictureRun& run : picture.runs) {
    const RankSummary& all = run.summary.together;
    for (const RankSummary& rank : run.summary.ranks) rows += span_row(rank_heading(picture, run, rank.label), rank);
    if (run.summary.ranks.size() > 1) rows += span_row(rank_heading(picture, run, all.label + ", added up"), all);
  }
  return html_table("figures", "Where the time of each rank goes", headings, rows);
}

std::string figure_cell(const CollectiveFigure& figure, const CollectiveLine& line) {
  const std::string unit = figure.unit;
  const auto value = figure.value(line);
  if (!value) return unit == "GB/s" ? "not known" : "not said";
  if (unit == "GB/s") return fmt::format("{:.2f} GB/s", *value);
  if (unit == "ms") return ms_text(line.time_ns) + " ms";
  return unit == "bytes" ? bytes_text(static_cast<long long>(*value)) : number_text(static_cast<long long>(*value));
}

// The calls of each rank by collective, element type and group, with bytes and bandwidths.
std::string collectives_table(const TracePicture& picture) {
  std::string rows;
  for (const PictureRun& run : picture.runs)
    for (const RankSummary& rank : run.summary.ranks)
      for (const CollectiveLine& line : rank.collectives) {
        std::string group = line.group.empty() ? "not said" : visible_name(line.group);
        if (line.group_size > 0) group += fmt::format(", {} ranks", line.group_size);
        std::vector<std::string> cells = {rank_heading(picture, run, rank.label), collective_text(line.collective),
                                          line.type.empty() ? "not said" : visible_name(line.type), group};
        for (const CollectiveFigure& figure : kCollectiveFigures) cells.push_back(figure_cell(figure, line));
        rows += html_row(cells);
      }
  if (rows.empty()) return "<p>No collective was found.</p>\n";
  return html_table("collectives", "The calls of each rank; their times add up, waiting included",
                    {"rank", "collective", "type", "group", "calls", "time", "message", "sent", "algorithm bandwidth",
                     "bus bandwidth"},
                    rows);
}

// What each lane of the timeline holds.
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
        rows += html_row({fmt::format("{}, {}", rank_heading(picture, run, rank.label), lane_kind_text(lane.kind)),
                          number_text(events), number_text(slices), slice_text(run.timeline, *longest)});
      }
    }
  }
  return html_table("lanes", "The lanes of the timeline", {"lane", "events", "drawn as", "the longest"}, rows);
}

// What each figure of a rank is made from.
const char* basis_text(TimeBasis basis) {
  constexpr std::array<const char*, 4> kTexts = {
      "Computation and communication are kernels on the device; ranges and the time to start kernels are not.",
      "There are no kernels: operators on the CPU count as computation, Gloo's collectives as communication.",
      "Computation and communication are what the lesson recorded, by the clock of the machine it ran on.",
      "There is nothing that could be timed."};
  return kTexts[static_cast<std::size_t>(basis)];
}

// What was counted, what was left out and why, and what to mind when reading the figures.
std::string counted_list(const TracePicture& picture) {
  std::string html;
  for (const PictureRun& run : picture.runs) {
    const Summary& summary = run.summary;
    std::vector<std::string> sentences = {basis_text(summary.together.basis)};
    for (const std::string& path : summary.paths) sentences.push_back("Read: " + visible_name(path));
    sentences.push_back(summary.world_size > 0
                            ? fmt::format("Ranks: {} of {}.", summary.ranks.size(), summary.world_size)
                            : fmt::format("Ranks: {}; of how many, the trace does not say.", summary.ranks.size()));
    for (int i = 0; i < kEventClasses; ++i)
      if (const std::int64_t events = summary.counted.of(static_cast<EventClass>(i)); events > 0)
        sentences.push_back(
            fmt::format("Events of class {}: {}", event_class_name(static_cast<EventClass>(i)), number_text(events)));
    for (const auto& [why, events] : summary.counted.left_out)
      sentences.push_back(fmt::format("Left out: {} events ({})", number_text(events), why));
    append(sentences, summary.notes);
    if (picture.runs.size() > 1) html += fmt::format("<h3>{}: {}</h3>\n", run_letter(picture, run), xml_text(run.name));
    html += html_list(&run == &picture.runs.front() ? "counted" : "counted-of-the-other", sentences);
  }
  return html;
}

// The sentences on why runs are not comparable; nothing without any.
std::string warnings_list(const TracePicture& picture) {
  if (picture.warnings.empty()) return "";
  return "<h2>What keeps these runs from being compared</h2>\n" + html_list("warnings", picture.warnings);
}

// ── What the colours stand for.

template <class Text>
std::string legend(const char* what, const std::set<int>& numbers, const Text& text) {
  std::string html = "<ul class=\"legend\">\n";
  for (const int number : numbers)
    html += fmt::format("<li><span class=\"swatch {}{}\"></span>{}</li>\n", what, number, text(number));
  return html + "</ul>\n";
}

std::string lane_legend(const TracePicture& picture) {
  std::set<int> kinds;
  for (const PictureLine& line : picture_lines(picture))
    if (line.row != nullptr) kinds.insert(static_cast<int>(line.kind));
  return legend("lane", kinds, [](int kind) { return lane_kind_text(static_cast<LaneKind>(kind)); });
}

std::string part_legend() {
  std::set<int> parts;
  for (int part = 0; part < kSpanParts; ++part) parts.insert(part);
  return legend("part", parts, [](int part) { return span_part_text(static_cast<SpanPart>(part)); });
}

// Lanes and parts of spans, by their numbers.
std::string style() {
  std::vector<std::pair<std::string, Colour>> colours;
  std::string css;
  for (int kind = 0; kind < kLaneKinds; ++kind) {
    colours.emplace_back(fmt::format("lane{}", kind), lane_kind_colour(static_cast<LaneKind>(kind)));
    css += fmt::format(".lane{0} {{ background: var(--lane{0}); }}\n", kind);
  }
  for (int part = 0; part < kSpanParts; ++part) {
    colours.emplace_back(fmt::format("part{}", part), span_part_colour(static_cast<SpanPart>(part)));
    css += fmt::format(".part{0} {{ background: var(--part{0}); }}\n", part);
  }
  return coloured_style(std::move(colours), css + page_texts::page_css + page_texts::trace_css);
}

// ── What the scripts draw.

// "lines", "texts" and "slices". Runs have texts of their own: each keeps its numbers, moved behind those of the runs
// before.
void add_timeline(const TracePicture& picture, json& data) {
  std::map<const Timeline*, std::int32_t> first_text;
  for (const PictureRun& run : picture.runs) {
    first_text[&run.timeline] = static_cast<std::int32_t>(data["texts"].size());
    for (const std::string& text : run.timeline.texts) data["texts"].push_back(text);
  }
  for (const PictureLine& line : picture_lines(picture)) {
    const std::size_t number = data["lines"].size();
    data["lines"].push_back({{"text", line.text},
                             {"lane", line.lane},
                             {"kind", line.row == nullptr ? json(nullptr) : json(static_cast<int>(line.kind))}});
    if (line.row == nullptr) continue;
    const auto text = [&](std::int32_t of_run) { return of_run < 0 ? -1 : of_run + first_text.at(line.timeline); };
    for (const TimelineSlice& slice : *line.row)
      data["slices"].push_back({number, slice.begin_ns, slice.duration_ns, slice.busy_ns, slice.events,
                                text(slice.name), text(slice.type), text(slice.group), slice.message_bytes,
                                slice.sent_bytes});
  }
}

// JSON that may stand inside a `<script>`; times in whole nanoseconds.
//   "span_ns"   what the time scale has room for
//   "lines"     [{"text", "lane", "kind"}]: the lines of the timeline; "kind" is an index into "lane_colours", null for
//               a heading
//   "texts"     names, element types and groups
//   "slices"    [line, begin, duration, covered, events, name, type, group, message bytes, sent bytes]; the three texts
//               are indices into "texts", −1 where they differ or are not said, as are bytes
//   "bars"      [{"text", "span_ns", "parts_ns": [5]}]: one per rank; nothing where nothing could be timed
//   "parts"     ["computation alone", …]
//   "colours"   {"paper": {"light": "#ffffff", "dark": "#14171c"}, …}; "lane_colours", "part_colours": lists of the
//   same
std::string page_data(const TracePicture& picture) {
  std::int64_t span = 0;
  for (const PictureRun& run : picture.runs) span = std::max(span, run.timeline.span_ns);
  json data = {{"span_ns", span}};
  for (const char* list : {"texts", "lines", "slices", "bars"}) data[list] = json::array();
  add_timeline(picture, data);
  for (const PictureRun& run : picture.runs)
    for (const RankSummary& rank : run.summary.ranks)
      if (rank.basis != TimeBasis::none)
        data["bars"].push_back({{"text", rank_heading(picture, run, rank.label)},
                                {"span_ns", rank.span_ns},
                                {"parts_ns", span_parts(rank)}});
  for (int part = 0; part < kSpanParts; ++part) {
    data["parts"].push_back(span_part_text(static_cast<SpanPart>(part)));
    data["part_colours"].push_back(colour_json(span_part_colour(static_cast<SpanPart>(part))));
  }
  for (int kind = 0; kind < kLaneKinds; ++kind)
    data["lane_colours"].push_back(colour_json(lane_kind_colour(static_cast<LaneKind>(kind))));
  for (const auto& [name, colour] : page_shades()) data["colours"][name] = colour_json(colour);
  return script_json(data);
}

}  // namespace

std::array<std::int64_t, kSpanParts> span_parts(const RankSummary& summary) {
  const std::int64_t computing_or_communicating =
      summary.computation_ns + summary.communication_ns - summary.overlap_ns;
  return {summary.computation_ns - summary.overlap_ns, summary.overlap_ns,
          summary.communication_ns - summary.overlap_ns, summary.span_ns - summary.idle_ns - computing_or_communicating,
          summary.idle_ns};
}

std::string span_part_figures(std::int64_t part_ns, std::int64_t span_ns) {
  if (span_ns <= 0) return fmt::format("{} ms", ms_text(part_ns));
  return fmt::format("{} ms, {}", ms_text(part_ns),
                     percent_text(static_cast<double>(part_ns) / static_cast<double>(span_ns)));
}

PictureRun picture_run(const std::vector<TraceFile>& files, const Summary& summary) {
  PictureRun run{visible_name(summary.title), make_timeline(files), summary};
  if (run.name.empty() && !summary.paths.empty()) {
    const std::string& path = summary.paths.front();
    run.name = visible_name(path.substr(path.find_last_of('/') + 1));
  }
  if (summary.title.empty() && summary.paths.size() > 1)
    run.name += fmt::format(" and {} more", summary.paths.size() - 1);
  return run;
}

std::string trace_page(const TracePicture& picture, std::int64_t most_slices) {
  TracePicture drawn = picture;
  std::vector<Timeline*> timelines;
  for (PictureRun& run : drawn.runs) timelines.push_back(&run.timeline);
  merge_until_few(timelines, most_slices);
  return filled_page(page_texts::page_html, {{"title", xml_text(picture_title(drawn))},
                                             {"style", style()},
                                             {"warnings", warnings_list(drawn)},
                                             {"part_legend", part_legend()},
                                             {"span_table", span_table(drawn)},
                                             {"drawn", xml_text(drawn_text(drawn))},
                                             {"lane_legend", lane_legend(drawn)},
                                             {"lanes_table", lanes_table(drawn)},
                                             {"collectives_table", collectives_table(drawn)},
                                             {"counted", counted_list(drawn)},
                                             {"notice", page_texts::echarts_notice},
                                             {"echarts", page_texts::echarts_js},
                                             {"data", page_data(drawn)},
                                             {"tooltip_js", page_texts::tooltip_js},
                                             {"timeline_js", page_texts::timeline_js},
                                             {"bars_js", page_texts::bars_js},
                                             {"page_js", page_texts::page_js}});
}

}  // namespace muonwalk::sim
