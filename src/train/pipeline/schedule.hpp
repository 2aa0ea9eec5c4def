#pragma once

#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// In which order the stages of a pipeline work through the micro-batches of a step. Either order adds up the same
/// gradients, so the bits are the same; what differs is how many activations a stage holds.
enum class PipelineSchedule {
  gpipe,       ///< all forwards, then all backwards (Huang et al., "GPipe", 2019)
  one_f_one_b  ///< a few forwards, then a forward and a backward in turn (PipeDream-Flush; Narayanan et al., 2021)
};

/// "gpipe", "1f1b".
const char* pipeline_schedule_name(PipelineSchedule schedule);
/// The opposite of pipeline_schedule_name; throws UsageError, naming --schedule, for any other word.
PipelineSchedule parse_pipeline_schedule(const std::string& word);

/// One thing that a stage does with one micro-batch.
struct PipelineMove {
  /// Forward through the stage's layers, or backward through them.
  enum class Kind { forward, backward };
  Kind kind = Kind::forward;  ///< which of the two
  int micro_batch = 0;        ///< The micro-batch's number, from 0.

  /// Whether both members are equal.
  /// @{
  friend bool operator==(PipelineMove a, PipelineMove b) { return a.kind == b.kind && a.micro_batch == b.micro_batch; }
  friend bool operator!=(PipelineMove a, PipelineMove b) { return !(a == b); }
  /// @}
};

/// "forward of micro-batch 3", "backward of micro-batch 3".
std::string move_name(PipelineMove move);
/// What stage `stage` of `stages` does in a step of `micro_batches`, in order: one forward and one backward for each of
/// them. Forwards come by number, and so do backwards: a stage can then add up gradients as they come, in a fixed order
/// (RunningTreeSum). The other way round, last micro-batch first, GPipe would take the same time.
///
/// In 1F1B, stage s begins with min(stages − s − 1, micro_batches) forwards, so that the last stage, which needs none
/// of them, can turn the first micro-batch round at once. Then each forward is followed by a backward, and the
/// backwards that are left end the step (Megatron-LM's schedule without interleaving).
///
/// Between neighbours, messages are sent and received in the same order, that of the micro-batches. In 1F1B, two
/// neighbours send to each other at the same time. So sends have to be posted: if each waited until it was taken, they
/// would wait for each other forever.
///
/// Throws std::invalid_argument where there is no such stage, or no micro-batch.
std::vector<PipelineMove> pipeline_moves(PipelineSchedule schedule, int stages, int stage, int micro_batches);

/// The most micro-batches that a stage holds activations of at one time, each from the beginning of its forward to the
/// end of its backward: all of them in GPipe, min(micro_batches, stages − stage) in 1F1B. Throws as pipeline_moves
/// does.
Index most_in_flight(PipelineSchedule schedule, int stages, int stage, int micro_batches);

/// How long each stage of a pipeline is idle in a step, over how long it works, where all stages take equally long and
/// messages take no time: (stages − 1) / micro_batches, in both schedules. Stages that are cut into v pieces, which
/// Muonwalk doesn't do, would make it v times smaller. Source: Narayanan et al., "Efficient Large-Scale Language Model
/// Training on GPU Clusters Using Megatron-LM", SC 2021, section 2.2. Throws std::invalid_argument where there is no
/// stage, or no micro-batch.
double bubble_formula(int stages, int micro_batches);

/// The layers of stage `stage`: a contiguous range of `layers` layers, in the order of the stages. Where they can't be
/// dealt out equally, the last stages have one more than the first: in 1F1B these hold the most activations. Throws
/// UsageError, naming --pp, where a stage would have no layer, and std::invalid_argument where there is no such stage.
Range split_layers(int layers, int stages, int stage);

}  // namespace muonwalk
