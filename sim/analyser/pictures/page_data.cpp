#include "sim/analyser/pictures/page_data.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "sim/analyser/pictures/span_parts.hpp"

namespace muonwalk::sim {
namespace {

using nlohmann::json;

json colour_json(Colour colour) { return {{"light", colour.light}, {"dark", colour.dark}}; }

// Runs have texts of their own: each keeps its numbers, moved behind those of the runs before.
std::map<const Timeline*, int> first_text_of(const TracePicture& picture, json& texts) {
  std::map<const Timeline*, int> first;
  for (const PictureRun& run : picture.runs) {
    first[&run.timeline] = static_cast<int>(texts.size());
    for (const std::string& text : run.timeline.texts) texts.push_back(text);
  }
  return first;
}

json slice_json(std::size_t line, const TimelineSlice& slice, int first_text) {
  const auto text = [&](std::int32_t number) { return number < 0 ? -1 : number + first_text; };
  return {line,
          slice.begin_ns,
          slice.duration_ns,
          slice.busy_ns,
          slice.events,
          text(slice.name),
          text(slice.type),
          text(slice.group),
          slice.message_bytes,
          slice.sent_bytes};
}

void add_timeline(const TracePicture& picture, json& data) {
  json texts = json::array(), lines = json::array(), slices = json::array();
  const auto first_text = first_text_of(picture, texts);
  for (const PictureLine& line : picture_lines(picture)) {
    const std::size_t number = lines.size();
    lines.push_back({{"text", line.text},
                     {"lane", line.lane},
                     {"kind", line.row == nullptr ? json(nullptr) : json(static_cast<int>(line.kind))}});
    if (line.row == nullptr) continue;
    for (const TimelineSlice& slice : *line.row)
      slices.push_back(slice_json(number, slice, first_text.at(line.timeline)));
  }
  data["texts"] = std::move(texts);
  data["lines"] = std::move(lines);
  data["slices"] = std::move(slices);
}

json bars_json(const TracePicture& picture) {
  json bars = json::array();
  for (const PictureRun& run : picture.runs) {
    for (const RankSummary& rank : run.summary.ranks) {
      if (rank.basis == TimeBasis::none) continue;
      bars.push_back({{"text", rank_heading(picture, run, rank.label)},
                      {"span_ns", rank.span_ns},
                      {"parts_ns", span_parts(rank)}});
    }
  }
  return bars;
}

}  // namespace

std::string page_data(const TracePicture& picture) {
  json data;
  data["span_ns"] = longest_span(picture);
  add_timeline(picture, data);
  data["bars"] = bars_json(picture);
  for (int part = 0; part < kSpanParts; ++part) {
    data["parts"].push_back(span_part_text(static_cast<SpanPart>(part)));
    data["part_colours"].push_back(colour_json(span_part_colour(static_cast<SpanPart>(part))));
  }
  for (int kind = 0; kind < kLaneKinds; ++kind)
    data["lane_colours"].push_back(colour_json(lane_kind_colour(static_cast<LaneKind>(kind))));
  data["colours"] = {{"paper", colour_json(kPaper)},
                     {"ink", colour_json(kInk)},
                     {"quiet", colour_json(kQuiet)},
                     {"ground", colour_json(kPadding)},
                     {"edge", colour_json(kHatch)}};
  // Names may hold anything: bytes that are no UTF-8 are replaced, and no name can end the script.
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace muonwalk::sim
