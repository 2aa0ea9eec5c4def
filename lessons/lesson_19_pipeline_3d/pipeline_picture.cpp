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
constexpr double kPageMargin = SvgPicture::kMargin;
constexpr double kTimeAt = kPageMargin + 74;  // where time 0 is, behind the names of the stages
constexpr double kNotesWide = 76;             // on the right
constexpr double kTimeWide = kPageWidth - kPageMargin - kNotesWide - kTimeAt;
constexpr double kMoveHeight = 26;
constexpr double kHeldHeight = 18;  // of the bar for the most that any stage of the picture holds
constexpr double kStagePitch = 54;

// Where a timeline is drawn, and how large.
struct Placed {
  const PipelineTimeline& timeline;
  std::int64_t zero;  // its first moment
  double scale;       // units of the picture for a unit of time
  int most_held;      // by any stage of the picture

  double x(std::int64_t time) const { return kTimeAt + scale * static_cast<double>(time - zero); }
};

// One stage: its moves, and below them what it holds, from `top` on.
void draw_stage(SvgPicture& picture, const Placed& placed, int stage, double top) {
  const PipelineTimeline& timeline = placed.timeline;
  const auto between = [&](const Interval& time) {
    return fmt::format("{} to {}", count_text(time.begin, "unit"), count_text(time.end, "unit"));
  };
  const auto box = [&](const Interval& time, double y, double height, const char* classes, const std::string& tip,
                       const std::string& label) {
    const double left = placed.x(time.begin), width = placed.x(time.end) - left;
    if (width > 0) picture.box(left, y, width, height, classes, tip, label);
  };
  const double end = placed.x(timeline.extent().end), bottom = top + kMoveHeight + 2 + kHeldHeight;
  picture.text(kPageMargin, top + 17, "mw-quiet", fmt::format("stage {}", stage));
  picture.box(kTimeAt, top, end - kTimeAt, kMoveHeight, "mw-padding");
  for (const PipelineSpan& span : timeline.stages[static_cast<std::size_t>(stage)])
    box(span.time, top, kMoveHeight, span.move.kind == PipelineMove::Kind::forward ? "mw-gap mw-p0" : "mw-gap mw-p4",
        fmt::format("stage {}: {}, {}", stage, move_name(span.move), between(span.time)),
        std::to_string(span.move.micro_batch));
  for (const HeldActivations& held : timeline.held(stage)) {
    const double height = kHeldHeight * held.micro_batches / placed.most_held;
    box(held.time, bottom - height, height, "mw-grey",
        fmt::format("stage {}, {}: micro-batches held: {}", stage, between(held.time), held.micro_batches), "");
  }
  picture.text(end + 10, bottom - 2, "mw-small mw-quiet", fmt::format("at most {}", timeline.most_held(stage)));
}

std::string words_for(const std::string& name, const PipelineTimeline& timeline) {
  const Interval extent = timeline.extent();
  return fmt::format("{} · {} · {}", visible_name(name), count_text(extent.end - extent.begin, "unit"),
                     bubble_text(timeline));
}

// Of all stages, for those who can't see the bars.
std::string held_words(const PipelineTimeline& timeline) {
  std::vector<int> most;
  for (int stage = 0; stage < static_cast<int>(timeline.stages.size()); ++stage)
    most.push_back(timeline.most_held(stage));
  return fmt::format("Micro-batches held at most, by stage: {}.", fmt::join(most, ", "));
}

}  // namespace

std::string pipelines_svg(const std::string& title, const NamedTimelines& timelines) {
  if (timelines.empty()) throw std::invalid_argument("a picture of pipelines needs at least one of them");
  std::int64_t longest = 0;
  int most_held = 1;
  for (const auto& [name, timeline] : timelines) {
    const Interval extent = timeline.extent();
    if (extent.end == extent.begin) throw std::invalid_argument("a pipeline without moves can't be drawn");
    longest = std::max(longest, extent.end - extent.begin);
    for (int stage = 0; stage < static_cast<int>(timeline.stages.size()); ++stage)
      most_held = std::max(most_held, timeline.most_held(stage));
  }

  SvgPicture picture(kPageWidth, title, "A row is a stage; below its moves stands how many micro-batches it holds.");
  double y = 78;
  y += picture.legend(y, {{"mw-p0", "forward of a micro-batch"},
                          {"mw-p4", "backward of a micro-batch"},
                          {"mw-padding", "idle"},
                          {"mw-grey", "activations held"}});
  for (const auto& [name, timeline] : timelines) {
    const int stages = static_cast<int>(timeline.stages.size());
    const std::string words = words_for(name, timeline);
    y += 20;
    picture.text(kPageMargin, y, "mw-prose mw-strong", words);
    for (int stage = 0; stage < stages; ++stage)
      draw_stage(picture, {timeline, timeline.extent().begin, kTimeWide / static_cast<double>(longest), most_held},
                 stage, y + 10 + kStagePitch * stage);
    picture.say(words + ". " + held_words(timeline));
    y += 10 + kStagePitch * stages + 6;
  }
  return picture.svg(y + 2);
}

}  // namespace muonwalk::sim
