#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kPageWidth = 960;
constexpr double kPageMargin = 24;
constexpr double kTimeAt = kPageMargin + 74;  // where time 0 is, behind the names of the stages
constexpr double kNotesWide = 76;             // on the right
constexpr double kTimeWide = kPageWidth - kPageMargin - kNotesWide - kTimeAt;
constexpr double kMoveHeight = 26;
constexpr double kHeldHeight = 18;  // of the bar for the most that any stage of the picture holds
constexpr double kStagePitch = 54;
constexpr double kDigitWide = 6.6;
constexpr Colour kForward = kParameterColours[0];
constexpr Colour kBackward = kParameterColours[4];

SvgStyle pipeline_style() {
  SvgStyle style(".mw-pipeline", 12, 17, 13);
  style.rule(".mw-small", "font-size:10.5px");
  style.colour(".mw-idle", "fill", kPadding);
  style.colour(".mw-forward", "fill", kForward);
  style.colour(".mw-backward", "fill", kBackward);
  style.colour(".mw-held", "fill", kHatch);
  style.colour(".mw-move", "stroke", kPaper);
  return style;
}

std::string moment_text(const PipelineTimeline& timeline, std::int64_t time) {
  return timeline.clock == PipelineClock::units ? count_text(time, "unit") : ms_text(time) + " ms";
}

// Where a timeline is drawn, and how large.
struct Placed {
  const PipelineTimeline& timeline;
  std::int64_t zero;  // its first moment
  double scale;       // units of the picture for a unit of time
  int most_held;      // by any stage of the picture

  double x(std::int64_t time) const { return kTimeAt + scale * static_cast<double>(time - zero); }
};

std::string move_box(const Placed& placed, int stage, const PipelineSpan& span, double top) {
  const double left = placed.x(span.time.begin), width = placed.x(span.time.end) - left;
  if (width <= 0) return "";
  const PipelineTimeline& timeline = placed.timeline;
  const bool forward = span.move.kind == PipelineMove::Kind::forward;
  std::string svg = svg_rectangle(
      left, top, width, kMoveHeight, fmt::format("class=\"mw-move mw-{}\"", forward ? "forward" : "backward"),
      fmt::format("<title>stage {}: {}, {} to {}</title>", stage, move_name(span.move),
                  moment_text(timeline, span.time.begin), moment_text(timeline, span.time.end)));
  const std::string number = std::to_string(span.move.micro_batch);
  if (width >= kDigitWide * static_cast<double>(number.size()) + 4)
    svg += svg_text(left + width / 2, top + 17, "mw-middle", number);
  return svg;
}

std::string stage_lane(const Placed& placed, int stage, double top) {
  const PipelineTimeline& timeline = placed.timeline;
  const Interval extent = timeline.extent();
  std::string svg = svg_text(kPageMargin, top + 17, "mw-quiet", fmt::format("stage {}", stage));
  svg += svg_rectangle(kTimeAt, top, placed.x(extent.end) - kTimeAt, kMoveHeight, "class=\"mw-idle\"");
  for (const PipelineSpan& span : timeline.stages[static_cast<std::size_t>(stage)])
    svg += move_box(placed, stage, span, top);
  const double bottom = top + kMoveHeight + 2 + kHeldHeight;
  for (const HeldActivations& held : timeline.held(stage)) {
    const double height = kHeldHeight * held.micro_batches / placed.most_held;
    const double left = placed.x(held.time.begin);
    svg += svg_rectangle(
        left, bottom - height, placed.x(held.time.end) - left, height, "class=\"mw-held\"",
        fmt::format("<title>stage {}, {} to {}: micro-batches held: {}</title>", stage,
                    moment_text(timeline, held.time.begin), moment_text(timeline, held.time.end), held.micro_batches));
  }
  svg += svg_text(placed.x(extent.end) + 10, bottom - 2, "mw-small mw-quiet",
                  fmt::format("at most {}", timeline.most_held(stage)));
  return svg;
}

std::string words_for(const std::string& name, const PipelineTimeline& timeline) {
  const Interval extent = timeline.extent();
  return fmt::format("{} · {} · {}", visible_name(name), moment_text(timeline, extent.end - extent.begin),
                     bubble_text(timeline));
}

// Of all stages, for those who can't see the bars.
std::string held_words(const PipelineTimeline& timeline) {
  std::vector<int> most;
  for (int stage = 0; stage < static_cast<int>(timeline.stages.size()); ++stage)
    most.push_back(timeline.most_held(stage));
  return fmt::format("Micro-batches held at most, by stage: {}.", fmt::join(most, ", "));
}

// What the colours mean, in a line below the title.
std::string legend() {
  double x = kPageMargin;
  std::string svg;
  const auto entry = [&](const std::string& css_class, const std::string& words, double width) {
    svg += svg_rectangle(x, 50, 14, 14, fmt::format("class=\"{}\"", css_class));
    svg += svg_text(x + 20, 62, "mw-prose mw-quiet", words);
    x += width;
  };
  entry("mw-forward", "forward of a micro-batch", 210);
  entry("mw-backward", "backward of a micro-batch", 220);
  entry("mw-idle", "idle", 70);
  entry("mw-held", "activations held, in micro-batches", 0);
  return svg;
}

}  // namespace

std::string pipelines_svg(const std::string& title, const NamedTimelines& timelines) {
  if (timelines.empty()) throw std::invalid_argument("a picture of pipelines needs at least one of them");
  std::int64_t longest[2] = {0, 0};  // [clock]
  int most_held = 1;
  for (const auto& [name, timeline] : timelines) {
    const Interval extent = timeline.extent();
    if (extent.end == extent.begin) throw std::invalid_argument("a pipeline without moves can't be drawn");
    std::int64_t& of_clock = longest[static_cast<std::size_t>(timeline.clock)];
    of_clock = std::max(of_clock, extent.end - extent.begin);
    for (int stage = 0; stage < static_cast<int>(timeline.stages.size()); ++stage)
      most_held = std::max(most_held, timeline.most_held(stage));
  }

  std::string body = svg_text(kPageMargin, 38, "mw-title", title);
  body += legend();
  std::string description;
  double y = 94;
  for (const auto& [name, timeline] : timelines) {
    const int stages = static_cast<int>(timeline.stages.size());
    const double scale = kTimeWide / static_cast<double>(longest[static_cast<std::size_t>(timeline.clock)]);
    const Placed placed{timeline, timeline.extent().begin, scale, most_held};
    const std::string words = words_for(name, timeline);
    body += svg_text(kPageMargin, y, "mw-prose mw-strong", words);
    for (int stage = 0; stage < stages; ++stage) body += stage_lane(placed, stage, y + 10 + kStagePitch * stage);
    description += fmt::format("{}{}. {}", description.empty() ? "" : " ", words, held_words(timeline));
    y += 10 + kStagePitch * stages + 26;
  }
  return svg_page("mw-pipeline", kPageWidth, y - 18, title, description, pipeline_style(), body);
}

}  // namespace muonwalk::sim
