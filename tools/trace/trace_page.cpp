#include "tools/trace/trace_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/replay/svg_parts.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "tools/trace/output.hpp"

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

// What is drawn in which colour.
struct Shade {
  const char* text;
  Colour colour;
};

// [SpanPart]
constexpr std::array<Shade, kSpanParts> kParts = {{{"computation alone", parameter_colour(0)},
                                                   {"overlap", parameter_colour(2)},
                                                   {"communication alone", parameter_colour(4)},
                                                   {"copies alone", parameter_colour(3)},
                                                   {"idle", kPadding}}};

// [LaneKind], in the colours of the parts where they show the same.
constexpr std::array<Shade, kLaneKinds> kLanes = {{{"computation", parameter_colour(0)},
                                                   {"communication", parameter_colour(4)},
                                                   {"copies", parameter_colour(3)},
                                                   {"device ranges", parameter_colour(5)},
                                                   {"host ranges", parameter_colour(7)},
                                                   {"steps, phases", parameter_colour(7)},
                                                   {"transfers", parameter_colour(4)}}};

const char* lane_text(LaneKind kind) { return kLanes[static_cast<std::size_t>(kind)].text; }

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
    const TimelineRow* above = nullptr;
    for (const TimelineRow& row : run.timeline.rows) {
      const std::string heading = rank_heading(picture, run, row.label);
      const bool same_rank = above != nullptr && above->rank == row.rank;
      if (!same_rank) lines.push_back({heading, heading, nullptr, &run.timeline, {}});
      lines.push_back({same_rank && above->kind == row.kind ? "" : lane_text(row.kind),
                       fmt::format("{}, {}", heading, lane_text(row.kind)), &row, &run.timeline, row.kind});
      above = &row;
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

// What muonwalk-trace prints of the runs: it says in words what the pictures show, and needs no script.
std::string printed(const TracePicture& picture) {
  std::string html;
  for (const PictureRun& run : picture.runs) {
    if (picture.runs.size() > 1) html += fmt::format("<h3>{}: {}</h3>\n", run_letter(picture, run), xml_text(run.name));
    html += fmt::format("<pre class=\"scroll\" tabindex=\"0\">{}</pre>\n",
                        xml_text(fmt::format("{}", fmt::join(summary_text(run.summary), "\n"))));
  }
  return html;
}

// The sentences on why runs are not comparable; nothing without any.
std::string warnings_list(const TracePicture& picture) {
  if (picture.warnings.empty()) return "";
  std::string html = "<h2>What keeps these runs from being compared</h2>\n<ul id=\"warnings\">\n";
  for (const std::string& sentence : picture.warnings) html += "<li>" + xml_text(sentence) + "</li>\n";
  return html + "</ul>\n";
}

// ── What the colours stand for.

template <std::size_t kShades>
std::string legend(const char* what, const std::array<Shade, kShades>& shades, const std::set<std::size_t>& drawn) {
  std::string html = "<ul class=\"legend\">\n";
  for (std::size_t i = 0; i < kShades; ++i)
    if (drawn.count(i) > 0)
      html += fmt::format("<li><span class=\"swatch\" style=\"background:var(--{}{})\"></span>{}</li>\n", what, i,
                          shades[i].text);
  return html + "</ul>\n";
}

std::string lane_legend(const TracePicture& picture) {
  std::set<std::size_t> kinds;
  for (const PictureLine& line : picture_lines(picture))
    if (line.row != nullptr) kinds.insert(static_cast<std::size_t>(line.kind));
  return legend("lane", kLanes, kinds);
}

// The colours of the page itself, by the names that its style sheet and scripts know them by.
constexpr std::pair<const char*, Colour> kPageColours[] = {
    {"paper", kPaper}, {"ink", kInk}, {"quiet", kQuiet}, {"ground", kPadding}, {"edge", kHatch}};

// The style sheet, which begins with all colours as properties, "--paper: #ffffff": first for readers who prefer light
// pages, then for those who prefer dark ones. Lanes and parts of spans have their numbers.
std::string style() {
  std::vector<std::pair<std::string, Colour>> colours(std::begin(kPageColours), std::end(kPageColours));
  colours.emplace_back("accent", rank_colour(7));  // of what has the focus
  for (std::size_t i = 0; i < kLanes.size(); ++i) colours.emplace_back(fmt::format("lane{}", i), kLanes[i].colour);
  for (std::size_t i = 0; i < kParts.size(); ++i) colours.emplace_back(fmt::format("part{}", i), kParts[i].colour);
  std::string light, dark;
  for (const auto& [name, colour] : colours) {
    light += fmt::format("--{}: {}; ", name, colour.light);
    dark += fmt::format("--{}: {}; ", name, colour.dark);
  }
  return ":root { " + light + "}\n@media (prefers-color-scheme: dark) {\n  :root { " + dark + "}\n}\n" +
         page_texts::page_css + page_texts::trace_css;
}

// ── What the scripts draw.

json colour_json(Colour colour) { return {{"light", colour.light}, {"dark", colour.dark}}; }

// JSON that may stand inside of a `<script>`: bytes that are not UTF-8 are replaced, and no text can end the script.
std::string script_json(const json& data) {
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

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
    for (const TimelineSlice& slice : line.row->slices)
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
  for (const Shade& part : kParts) {
    data["parts"].push_back(part.text);
    data["part_colours"].push_back(colour_json(part.colour));
  }
  for (const Shade& lane : kLanes) data["lane_colours"].push_back(colour_json(lane.colour));
  for (const auto& [name, colour] : kPageColours) data["colours"][name] = colour_json(colour);
  return script_json(data);
}

// The page with texts in the places that it marks with {{name}}. What is put in is not looked at again, so no name
// from outside can be taken for a place.
std::string filled_page(const std::string& page, const std::map<std::string, std::string>& texts) {
  std::string html;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = page.find("{{", at);
    if (open == std::string::npos) return html + page.substr(at);
    const std::size_t close = page.find("}}", open);
    const auto text = texts.find(page.substr(open + 2, close - open - 2));
    if (text == texts.end())
      throw RunError("a page has a place that nothing fills: " + page.substr(open, close - open + 2));
    html += page.substr(at, open - at) + text->second;
    at = close + 2;
  }
}

}  // namespace

std::array<std::int64_t, kSpanParts> span_parts(const RankSummary& summary) {
  const std::int64_t computing_or_communicating =
      summary.computation_ns + summary.communication_ns - summary.overlap_ns;
  return {summary.computation_ns - summary.overlap_ns, summary.overlap_ns,
          summary.communication_ns - summary.overlap_ns, summary.span_ns - summary.idle_ns - computing_or_communicating,
          summary.idle_ns};
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
                                             {"part_legend", legend("part", kParts, {0, 1, 2, 3, 4})},
                                             {"drawn", xml_text(drawn_text(drawn))},
                                             {"lane_legend", lane_legend(drawn)},
                                             {"printed", printed(drawn)},
                                             {"notice", page_texts::echarts_notice},
                                             {"echarts", page_texts::echarts_js},
                                             {"data", page_data(drawn)},
                                             {"tooltip_js", page_texts::tooltip_js},
                                             {"timeline_js", page_texts::timeline_js},
                                             {"bars_js", page_texts::bars_js},
                                             {"page_js", page_texts::page_js}});
}

}  // namespace muonwalk::sim
