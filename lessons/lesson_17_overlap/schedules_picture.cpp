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
constexpr double kPictureMargin = SvgPicture::kMargin;
constexpr double kBarsAt = kPictureMargin + 92;  // behind the names of the lanes
constexpr double kBarsWide = kPictureWidth - kPictureMargin - kBarsAt;
constexpr double kLaneHeight = 24;
constexpr double kLanePitch = 30;
constexpr double kWayPitch = 104;

std::string time_text(std::int64_t ns) { return fmt::format("{:.2f} ms", static_cast<double>(ns) / 1e6); }

// The bars of a lane, on `scale` units per nanosecond.
void draw_lane(SvgPicture& picture, const std::string& name, const std::vector<PlayedBar>& bars, double top,
               double scale, std::int64_t span_ns) {
  const auto x = [&](std::int64_t ns) { return kBarsAt + scale * static_cast<double>(ns); };
  picture.text(kPictureMargin, top + 16, "mw-small mw-quiet", name);
  picture.box(kBarsAt, top, x(span_ns) - kBarsAt, kLaneHeight, "mw-padding");
  for (const PlayedBar& bar : bars)
    picture.box(x(bar.stretch.begin), top, x(bar.stretch.end) - x(bar.stretch.begin), kLaneHeight,
                fmt::format("mw-p{} mw-gap", bar.bucket % kColours),
                fmt::format("{}: bucket {}, {} to {}", name, bar.bucket, time_text(bar.stretch.begin),
                            time_text(bar.stretch.end)),
                std::to_string(bar.bucket));
}

}  // namespace

std::string schedules_svg(const std::vector<std::pair<std::string, PlayedPlan>>& ways, const std::string& machine) {
  if (ways.empty()) throw std::invalid_argument("a picture of schedules needs at least one of them");
  std::int64_t longest = 1;
  for (const auto& [name, played] : ways) longest = std::max(longest, played.span_ns);
  const double scale = kBarsWide / static_cast<double>(longest);
  SvgPicture picture(kPictureWidth, "What travels, and what is worked on · " + machine,
                     "A colour and a number is a bucket. Where the processor's lane is empty, the rank waits.");
  double y = 88;
  for (const auto& [name, played] : ways) {
    const std::string words = fmt::format("{} · {}, of which {} waiting", visible_name(name), time_text(played.span_ns),
                                          time_text(played.waiting_ns));
    picture.text(kPictureMargin, y, "mw-prose mw-strong", words);
    draw_lane(picture, "link", played.link, y + 10, scale, played.span_ns);
    draw_lane(picture, "processor", played.processor, y + 10 + kLanePitch, scale, played.span_ns);
    const double end = kBarsAt + scale * static_cast<double>(played.span_ns);
    picture.line(end, y + 8, end, y + 12 + kLanePitch + kLaneHeight, "mw-line");
    picture.say(words + ".");
    y += kWayPitch;
  }
  return picture.svg(y - 14);
}

std::string schedules_svg(const std::vector<PlannedStep>& ways, const PlayedMachine& machine) {
  std::vector<std::pair<std::string, PlayedPlan>> played;
  for (const PlannedStep& way : ways) played.emplace_back(way.name, play_slowest(way.plans, way.layout, machine));
  return schedules_svg(played, link_speed_text(machine.link));
}

}  // namespace muonwalk::sim
