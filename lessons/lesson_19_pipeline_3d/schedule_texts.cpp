#include "lessons/lesson_19_pipeline_3d/schedule_texts.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lessons/lesson_19_pipeline_3d/measured_timelines.hpp"
#include "lessons/lesson_19_pipeline_3d/pipeline_picture.hpp"
#include "lessons/lesson_19_pipeline_3d/timeline_text.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/train/pipeline/pipeline_timeline.hpp"

namespace muonwalk::sim {
namespace {

using NamedTimelines = std::vector<std::pair<std::string, PipelineTimeline>>;

NamedTimelines played(const GptTraining& training, const Grid& grid) {
  NamedTimelines all;
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    all.emplace_back(pipeline_schedule_name(schedule),
                     play_pipeline(schedule, training.micro_batches / grid.dp(), equal_times(grid.pp(), 1, 2)));
  return all;
}

}  // namespace

std::string schedules_text(const GptTraining& training, const Grid& grid) {
  std::string text;
  for (const auto& [name, timeline] : played(training, grid))
    text += fmt::format("{}: {}\n{}\n", name, bubble_text(timeline), timeline_text(timeline));
  return text;
}

std::string schedules_svg(const GptTraining& training, const Grid& grid) {
  return pipelines_svg("Two schedules of a pipeline", played(training, grid));
}

void print_measured(LessonCore& lesson) {
  lesson.in_parent([&lesson] {
    const std::vector<MeasuredPipeline> measured = measured_timelines(lesson.trace());
    if (measured.empty()) return;
    if (lesson.options().verbose > 0) print_error_line(measured_bubbles(measured));
    NamedTimelines drawn;
    for (const MeasuredPipeline& each : measured) drawn.emplace_back(each.title, each.timeline);
    lesson.picture("schedules_measured", pipelines_svg("The same, as measured in this run", drawn));
  });
}

}  // namespace muonwalk::sim
