#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/replay/run_trace.hpp"
#include "src/train/pipeline/pipeline_timeline.hpp"

namespace muonwalk::sim {

/// A timeline as text, a line per stage, on one scale: "stage 0  0 1 2 · · ←0─ ←1─ ←2─". A number is the forward of
/// this micro-batch, one behind an arrow its backward, and a dot a unit of time in which the stage is idle. A move that
/// has more columns than its number needs has a line behind it. Where kColumns are too few, units in the middle are
/// left out, with "…" in their place. The lines have a line end between them, and none at the end. Throws
/// std::invalid_argument for a timeline that was measured, or has no moves, and for a move that takes no time.
std::string timeline_text(const PipelineTimeline& timeline);

/// "bubble 25.0 % on every stage, 25.0 % by the formula"; or, where they differ, "bubble by stage 25.0 %, 31.2 %; by
/// the formula 25.0 %": PipelineTimeline::bubble, and bubble_formula.
std::string bubble_text(const PipelineTimeline& timeline);

/// Timelines with their names.
using NamedTimelines = std::vector<std::pair<std::string, PipelineTimeline>>;

/// Timelines of a pipeline, below each other as an SVG picture. Each stage has a lane with a box per move, in one
/// colour for forward and another for backward, with the micro-batch's number; where the lane is empty, the stage is
/// idle. Below it, bars say how many micro-batches' activations the stage holds, on one scale in the whole picture. All
/// played timelines are on one scale of time, and all measured ones on another. Over each timeline stand its length and
/// its bubbles (bubble_text). Throws std::invalid_argument where there is no timeline, or one without moves.
std::string pipelines_svg(const std::string& title, const NamedTimelines& timelines);

/// The steps of a traced run in which micro-batches went through a pipeline, by their titles and in order, measured in
/// nanoseconds since the step's first move. Of each stage, the rank with dp 0 and tp 0 stands for all of it. Its moves
/// are the phases (Rank::phase) that have the name of one (move_name); a phase lasts until the next one. Within it,
/// calls on the groups "pp" and "first and last stage" count as idle time, and so does what comes directly before a
/// receive: it makes room for what is received. So a move may consist of several spans.
///
/// Steps without such phases are left out, and so are steps of which not all entries had room in the trace: those where
/// some stage has not gone forward and backward with the same micro-batches as the first one.
NamedTimelines measured_timelines(const RunTrace& run);

/// A line per step, for standard error: times differ from run to run. How long it took from the first move to the last,
/// and bubble_text. Longer lines are broken. No line end behind the last one.
std::string measured_bubbles(const NamedTimelines& measured);

}  // namespace muonwalk::sim
