#pragma once

#include <cstdint>
#include <vector>

#include "src/numerics/interval_set.hpp"
#include "src/train/pipeline/schedule.hpp"

namespace muonwalk::sim {

/// A move of a stage, or a part of one that was interrupted, and when it was made.
struct PipelineSpan {
  PipelineMove move;  ///< forward or backward of a micro-batch
  Interval time;      ///< The time from its beginning to its end.
};

/// While a stage holds the activations of this many micro-batches.
struct HeldActivations {
  Interval time;          ///< not empty
  int micro_batches = 0;  ///< at least 1
};

/// What the times of a timeline are counted in.
enum class PipelineClock {
  units,       ///< units without a name, of a schedule that was played
  nanoseconds  ///< Nanoseconds of a clock, in a run that was measured.
};

/// When the stages of a pipeline made their moves in one step, played or measured.
struct PipelineTimeline {
  PipelineClock clock = PipelineClock::units;     ///< what all times are counted in
  std::vector<std::vector<PipelineSpan>> stages;  ///< [stage], in the order of time

  /// From the beginning of the first move of any stage to the end of the last one.
  Interval extent() const;
  /// How many micro-batches the first stage made moves with.
  int micro_batches() const;
  /// How long a stage was at its moves, and how long it was not, within the extent.
  /// @{
  std::int64_t busy(int stage) const;
  std::int64_t idle(int stage) const;
  /// @}
  /// idle over busy, as bubble_formula counts; 0 for a stage that was never busy.
  double bubble(int stage) const;
  /// How many micro-batches' activations a stage held, and when: each from the beginning of its forward to the end of
  /// its backward. In the order of time, without the time in which it held none.
  std::vector<HeldActivations> held(int stage) const;
  /// The most of them.
  int most_held(int stage) const;
};

/// How long everything takes, in whole units of time.
struct PipelineTimes {
  std::vector<std::int64_t> forward;   ///< [stage], of one micro-batch
  std::vector<std::int64_t> backward;  ///< [stage], of one micro-batch
  std::int64_t message = 0;  ///< The time from the end of a move to the earliest beginning of the neighbour's.
};

/// The same times for all stages.
PipelineTimes equal_times(int stages, std::int64_t forward, std::int64_t backward, std::int64_t message = 0);

/// Plays a schedule (pipeline_moves) from time 0 on: a stage begins its next move as soon as it is done with the one
/// before and the neighbour's message has come. Sends are posted, so they keep nobody from working, and any number of
/// messages may be under way at once. Throws std::invalid_argument where the lists of times are empty or of different
/// lengths, where a time is negative, and as pipeline_moves does.
PipelineTimeline play_pipeline(PipelineSchedule schedule, int micro_batches, const PipelineTimes& times);

}  // namespace muonwalk::sim
