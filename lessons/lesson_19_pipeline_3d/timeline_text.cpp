#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "lessons/lesson_19_pipeline_3d/timelines.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// A line of characters, each of which takes one column.
using Cells = std::vector<std::string>;

// "3", "←3".
Cells name_of(PipelineMove move) {
  Cells name;
  if (move.kind == PipelineMove::Kind::backward) name.push_back("←");
  for (const char digit : std::to_string(move.micro_batch)) name.push_back(std::string(1, digit));
  return name;
}

std::size_t length_of(const PipelineSpan& span) { return static_cast<std::size_t>(span.time.end - span.time.begin); }

// How many columns a unit of time takes, so that there is a blank behind each move.
std::size_t columns_per_unit(const PipelineTimeline& timeline) {
  std::size_t unit = 2;
  for (const auto& spans : timeline.stages)
    for (const PipelineSpan& span : spans) {
      if (length_of(span) == 0) throw std::invalid_argument("a move of no time can't be drawn");
      unit = std::max(unit, name_of(span.move).size() / length_of(span) + 1);
    }
  return unit;
}

std::string columns_of(const Cells& line, std::size_t begin, std::size_t end) {
  std::string text;
  for (; begin < end; ++begin) text += line[begin];
  return text;
}

}  // namespace

std::string timeline_text(const PipelineTimeline& timeline) {
  const Interval extent = timeline.extent();
  if (extent.end == extent.begin) throw std::invalid_argument("a timeline without moves can't be drawn as text");
  const std::size_t unit = columns_per_unit(timeline);
  const auto units = static_cast<std::size_t>(extent.end - extent.begin);
  const std::string last_name = fmt::format("stage {}  ", timeline.stages.size() - 1);
  const std::size_t room = (static_cast<std::size_t>(output_columns()) - last_name.size()) / unit;
  // Where units are left out, the sign that says so takes the place of one.
  const std::size_t kept_at_end = units <= room ? 0 : (room - 1) / 2;
  const std::size_t kept_at_begin = units <= room ? units : room - 1 - kept_at_end;

  std::string text;
  for (std::size_t stage = 0; stage < timeline.stages.size(); ++stage) {
    Cells line;
    for (std::size_t i = 0; i < units; ++i) {
      line.push_back("·");
      line.resize(line.size() + unit - 1, " ");
    }
    for (const PipelineSpan& span : timeline.stages[stage]) {
      Cells move = name_of(span.move);
      move.resize(length_of(span) * unit - 1, "─");
      move.push_back(" ");
      std::copy(move.begin(), move.end(),
                line.begin() + (span.time.begin - extent.begin) * static_cast<std::int64_t>(unit));
    }
    std::string drawn = pad_right(fmt::format("stage {}", stage), static_cast<int>(last_name.size()));
    drawn += columns_of(line, 0, kept_at_begin * unit);
    if (units > room)
      drawn += pad_right("…", static_cast<int>(unit)) + columns_of(line, (units - kept_at_end) * unit, units * unit);
    drawn.erase(drawn.find_last_not_of(' ') + 1);
    text += (stage == 0 ? "" : "\n") + drawn;
  }
  return text;
}

std::string bubble_text(const PipelineTimeline& timeline) {
  return fmt::format("bubble {} on every stage, {} by the formula", percent_text(timeline.bubble(0)),
                     percent_text(bubble_formula(static_cast<int>(timeline.stages.size()), timeline.micro_batches())));
}

}  // namespace muonwalk::sim
