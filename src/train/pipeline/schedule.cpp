#include "src/train/pipeline/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

void require_stage(int stages, int stage) {
  if (stage < 0 || stage >= stages)
    throw std::invalid_argument(fmt::format("there is no stage {} in a pipeline of {}", stage, stages));
}

void require_micro_batch(int micro_batches) {
  if (micro_batches < 1) throw std::invalid_argument("a pipeline needs at least one micro-batch");
}

// How many forwards a stage is ahead of its backwards, before the first of these.
int forwards_ahead(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  return schedule == PipelineSchedule::gpipe ? micro_batches : std::min(stages - stage, micro_batches);
}

}  // namespace

const char* pipeline_schedule_name(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::gpipe ? "gpipe" : "1f1b";
}

PipelineSchedule parse_pipeline_schedule(const std::string& word) {
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    if (word == pipeline_schedule_name(schedule)) return schedule;
  throw UsageError("--schedule " + as_typed(word) + " is not known; it takes gpipe or 1f1b");
}

std::string move_name(PipelineMove move) {
  return fmt::format("{} of micro-batch {}", move.kind == PipelineMove::Kind::forward ? "forward" : "backward",
                     move.micro_batch);
}

std::vector<PipelineMove> pipeline_moves(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  require_stage(stages, stage);
  require_micro_batch(micro_batches);
  using Kind = PipelineMove::Kind;
  const int ahead = forwards_ahead(schedule, stages, stage, micro_batches);
  std::vector<PipelineMove> moves;
  for (int i = 0; i < ahead; ++i) moves.push_back({Kind::forward, i});
  for (int i = 0; i < micro_batches; ++i) {
    moves.push_back({Kind::backward, i});
    if (ahead + i < micro_batches) moves.push_back({Kind::forward, ahead + i});
  }
  return moves;
}

Index most_in_flight(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  require_stage(stages, stage);
  require_micro_batch(micro_batches);
  return forwards_ahead(schedule, stages, stage, micro_batches);
}

double bubble_formula(int stages, int micro_batches) {
  require_stage(stages, 0);
  require_micro_batch(micro_batches);
  return static_cast<double>(stages - 1) / micro_batches;
}

Range split_layers(int layers, int stages, int stage) {
  require_stage(stages, stage);
  if (stages > layers)
    throw UsageError(fmt::format("--pp {} makes more stages than the model has layers, {}; it takes at most {}", stages,
                                 layers, layers));
  const Index each = layers / stages;
  const int with_one_more = layers % stages;  // the last ones
  const int more_before = std::max(0, stage - (stages - with_one_more));
  const bool has_one_more = stage >= stages - with_one_more;
  const Index begin = each * stage + more_before;
  return {begin, begin + each + (has_one_more ? 1 : 0)};
}

}  // namespace muonwalk
