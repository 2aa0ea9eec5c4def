#pragma once

#include <string>
#include <vector>

#include "sim/replay/run_trace.hpp"
#include "src/train/pipeline/pipeline_timeline.hpp"

namespace muonwalk::sim {

/// A step of a traced run in which micro-batches went through a pipeline.
struct MeasuredPipeline {
  std::string title;          ///< of the step
  PipelineTimeline timeline;  ///< as it was measured, in nanoseconds since the step's first move
};

/// Those of all steps, in order. Of each stage, the rank with dp 0 and tp 0 stands for all of it. Its moves are the
/// phases (Rank::phase) that have the name of one (move_name); a phase lasts until the next one. Within it, calls on
/// the groups "pp" and "first and last stage" count as idle time, and so does what comes directly before a receive: it
/// makes room for what is received. So a move may consist of several spans.
///
/// Steps without such phases are left out, and so are steps of which not all entries had room in the trace: those where
/// some stage has not gone forward and backward with the same micro-batches as the first one.
std::vector<MeasuredPipeline> measured_timelines(const RunTrace& run);

/// A line per step, for standard error: times differ from run to run. How long it took from the first move to the last,
/// and bubble_text. At most 100 columns; longer lines are broken. No line end behind the last one.
std::string measured_bubbles(const std::vector<MeasuredPipeline>& measured);

}  // namespace muonwalk::sim
