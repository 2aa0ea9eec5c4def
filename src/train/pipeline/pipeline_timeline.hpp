#pragma once

#include <cstdint>
#include <vector>

#include "src/numerics/interval_set.hpp"
#include "src/train/pipeline/schedule.hpp"

namespace muonwalk::sim {

/// A move of a stage, and when it is made.
struct PipelineSpan {
  PipelineMove move;  ///< forward or backward of a micro-batch
  Interval time;      ///< The time from its beginning to its end.
};

/// When the stages of a pipeline make their moves in one step, in whole units of time.
struct PipelineTimeline {
  std::vector<std::vector<PipelineSpan>> stages;  ///< [stage], in the order of time

  /// From the beginning of the first move of any stage to the end of the last one.
  Interval extent() const;
  /// How many micro-batches the first stage makes moves with.
  int micro_batches() const;
  /// How long a stage is at its moves, and how long it is not, within the extent.
  /// @{
  std::int64_t busy(int stage) const;
  std::int64_t idle(int stage) const;
  /// @}
  /// idle over busy, as bubble_formula counts; 0 for a stage that is never busy.
  double bubble(int stage) const;
};

/// Plays a schedule (pipeline_moves) from time 0 on, where a micro-batch's forward takes as long on every stage, and so
/// does its backward: a stage begins its next move as soon as it is done with the one before and the neighbour is done
/// with its own. Messages take no time, and any number may be under way at once. Throws std::invalid_argument where
/// there is no stage or a time is negative, and as pipeline_moves does.
PipelineTimeline play_pipeline(PipelineSchedule schedule, int stages, int micro_batches, std::int64_t forward,
                               std::int64_t backward);

}  // namespace muonwalk::sim
