#include <fmt/format.h>

#include <map>

#include "sim/analyser/pictures/merge_slices.hpp"
#include "sim/analyser/pictures/page_data.hpp"
#include "sim/analyser/pictures/page_tables.hpp"
#include "sim/analyser/pictures/page_texts.hpp"
#include "sim/analyser/pictures/trace_picture.hpp"
#include "sim/pictures/xml_text.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

// The colours of the palette as properties that page.css uses.
std::string colour_properties(bool dark) {
  const auto property = [&](const std::string& name, Colour colour) {
    return fmt::format("--{}: {}; ", name, dark ? colour.dark : colour.light);
  };
  std::string css = property("paper", kPaper) + property("ink", kInk) + property("quiet", kQuiet) +
                    property("ground", kPadding) + property("edge", kHatch) + property("accent", rank_colour(7));
  for (int kind = 0; kind < kLaneKinds; ++kind)
    css += property(fmt::format("lane{}", kind), lane_kind_colour(static_cast<LaneKind>(kind)));
  for (int part = 0; part < kSpanParts; ++part)
    css += property(fmt::format("part{}", part), span_part_colour(static_cast<SpanPart>(part)));
  return css;
}

std::string style() {
  std::string css = ":root { " + colour_properties(false) + "}\n@media (prefers-color-scheme: dark) {\n  :root { " +
                    colour_properties(true) + "}\n}\n";
  for (int kind = 0; kind < kLaneKinds; ++kind)
    css += fmt::format(".lane{0} {{ background: var(--lane{0}); }}\n", kind);
  for (int part = 0; part < kSpanParts; ++part)
    css += fmt::format(".part{0} {{ background: var(--part{0}); }}\n", part);
  return css + page_texts::page_css;
}

// Puts texts in the places that page.html marks with {{name}}. What is put in is not looked at again, so that names in
// a trace can't be taken for places.
std::string filled(const std::string& page, const std::map<std::string, std::string>& texts) {
  std::string html;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = page.find("{{", at);
    if (open == std::string::npos) return html + page.substr(at);
    const std::size_t close = page.find("}}", open);
    const auto text = texts.find(page.substr(open + 2, close - open - 2));
    if (text == texts.end())
      throw RunError("page.html has a place that trace_page.cpp does not fill: " + page.substr(open, close - open + 2));
    html += page.substr(at, open - at) + text->second;
    at = close + 2;
  }
}

std::int64_t slices_of(const TracePicture& picture) {
  std::int64_t sum = 0;
  for (const PictureRun& run : picture.runs) sum += run.timeline.slices();
  return sum;
}

}  // namespace

std::string trace_page(const TracePicture& picture, std::int64_t most_slices) {
  TracePicture drawn = picture;
  std::vector<Timeline*> timelines;
  for (PictureRun& run : drawn.runs) timelines.push_back(&run.timeline);
  merge_until_few(timelines, most_slices);
  return filled(page_texts::page_html, {{"title", xml_text(picture_title(drawn))},
                                        {"style", style()},
                                        {"warnings", warnings_list(drawn)},
                                        {"part_legend", part_legend()},
                                        {"span_table", span_table(drawn)},
                                        {"drawn", xml_text(drawn_text(drawn, slices_of(drawn)))},
                                        {"lane_legend", lane_legend(drawn)},
                                        {"lanes_table", lanes_table(drawn)},
                                        {"collectives_table", collectives_table(drawn)},
                                        {"counted", counted_list(drawn)},
                                        {"notice", page_texts::echarts_notice},
                                        {"echarts", page_texts::echarts_js},
                                        {"data", page_data(drawn)},
                                        {"timeline_js", page_texts::timeline_js},
                                        {"bars_js", page_texts::bars_js},
                                        {"page_js", page_texts::page_js}});
}

}  // namespace muonwalk::sim
