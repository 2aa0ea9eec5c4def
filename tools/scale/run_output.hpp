#pragma once

#include <string>
#include <vector>

#include "tools/scale/run_prediction.hpp"

namespace muonwalk::sim {

/// What Muon adds to a step of a run, as lines of at most 100 columns: both steps, the optimizer's own time, bytes by
/// collective, memory, the band, every term of the step, and what was taken where the file is silent.
std::vector<std::string> run_text(const TrainingRun& run, const RunAnswer& prediction,
                                  const std::pair<RunBand, RunBand>& band);

/// The same as JSON, "muonwalk-answer 1".
std::string run_json(const TrainingRun& run, const RunAnswer& prediction, const std::pair<RunBand, RunBand>& band);

}  // namespace muonwalk::sim
