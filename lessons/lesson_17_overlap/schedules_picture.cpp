#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "lessons/lesson_17_overlap/overlap_tables.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kPictureWidth = 960;
constexpr double kPictureMargin = 24;
constexpr double kBarsAt = kPictureMargin + 92;  // behind the names of the lanes
constexpr double kBarsWide = kPictureWidth - kPictureMargin - kBarsAt;
constexpr double kLaneHeight = 24;
constexpr double kLanePitch = 30;
constexpr double kWayPitch = 104;
constexpr double kRoomForNumber = 12;

SvgStyle schedules_style() {
  SvgStyle style(".mw-schedules", 12, 17, 13);
  style.rule(".mw-small", "font-size:10.5px");
  style.colour(".mw-lane", "fill", kPadding);
  style.colour(".mw-ends", "stroke", kInk);
  style.colour(".mw-gap", "stroke", kPaper);
  style.colours(".mw-p", "fill", parameter_colour);
  return style;
}

std::string time_text(std::int64_t ns) { return fmt::format("{:.2f} ms", static_cast<double>(ns) / 1e6); }

// The bars of a lane, on `scale` units per nanosecond.
std::string lane_of_bars(const std::string& name, const std::vector<PlayedBar>& bars, double top, double scale,
                         std::int64_t span_ns) {
  const auto x = [&](std::int64_t ns) { return kBarsAt + scale * static_cast<double>(ns); };
  std::string svg = svg_text(kPictureMargin, top + 16, "mw-small mw-quiet", name);
  svg += svg_rectangle(kBarsAt, top, x(span_ns) - kBarsAt, kLaneHeight, "class=\"mw-lane\"");
  for (const PlayedBar& bar : bars) {
    const double left = x(bar.stretch.begin), width = x(bar.stretch.end) - left;
    svg += svg_rectangle(left, top, width, kLaneHeight, fmt::format("class=\"mw-p{} mw-gap\"", bar.bucket % kColours),
                         fmt::format("<title>{}: bucket {}, {} to {}</title>", name, bar.bucket,
                                     time_text(bar.stretch.begin), time_text(bar.stretch.end)));
    if (width >= kRoomForNumber)
      svg += svg_text(left + width / 2, top + 16, "mw-middle mw-small mw-ink", std::to_string(bar.bucket));
  }
  return svg;
}

}  // namespace

std::string schedules_svg(const std::vector<std::pair<std::string, PlayedPlan>>& ways, const std::string& machine) {
  if (ways.empty()) throw std::invalid_argument("a picture of schedules needs at least one of them");
  std::int64_t longest = 1;
  for (const auto& [name, played] : ways) longest = std::max(longest, played.span_ns);
  const double scale = kBarsWide / static_cast<double>(longest);

  std::string body = svg_text(kPictureMargin, 38, "mw-title", "What travels, and what is worked on · " + machine);
  body += svg_text(kPictureMargin, 60, "mw-prose mw-quiet",
                   "A colour and a number is a bucket. Where the processor's lane is empty, the rank waits.");
  std::string description;
  double y = 88;
  for (const auto& [name, played] : ways) {
    const std::string words = fmt::format("{} · {}, of which {} waiting", visible_name(name), time_text(played.span_ns),
                                          time_text(played.waiting_ns));
    body += svg_text(kPictureMargin, y, "mw-prose mw-strong", words);
    body += lane_of_bars("link", played.link, y + 10, scale, played.span_ns);
    body += lane_of_bars("processor", played.processor, y + 10 + kLanePitch, scale, played.span_ns);
    const double end = kBarsAt + scale * static_cast<double>(played.span_ns);
    body += svg_line(end, y + 8, end, y + 12 + kLanePitch + kLaneHeight, "class=\"mw-ends\"");
    description += fmt::format("{}{}.", description.empty() ? "" : " ", words);
    y += kWayPitch;
  }
  return svg_page("mw-schedules", kPictureWidth, y - 14, "Schedules of a gather, " + machine, description,
                  schedules_style(), body);
}

std::string schedules_svg(const std::vector<PlannedStep>& ways, const PlayedMachine& machine) {
  std::vector<std::pair<std::string, PlayedPlan>> played;
  for (const PlannedStep& way : ways) played.emplace_back(way.name, play_slowest(way.plans, way.layout, machine));
  return schedules_svg(played, link_speed_text(machine.link));
}

}  // namespace muonwalk::sim
