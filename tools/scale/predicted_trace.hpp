#pragma once

#include "sim/replay/run_trace.hpp"
#include "tools/scale/step_prediction.hpp"

namespace muonwalk::sim {

/// A predicted step as the trace of a run that nobody made: one rank of each pipeline stage, with DP rank 0 and TP rank
/// 0, on one clock. Forwards and backwards come in the order of 1F1B, every stage as slow as the slowest, a backward
/// taking two thirds of its time; then what comes after the last micro-batch, one after the other: transfers as calls
/// of their group, whose bytes are those that the prediction knows. Its backend is "predicted", and so is the label of
/// every rank; ranks are numbered as their stages are. Throws UsageError for more than 100,000 forwards.
RunTrace predicted_trace(const StepQuestion& question, const StepPrediction& prediction);

}  // namespace muonwalk::sim
