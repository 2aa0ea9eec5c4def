#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/scale/layout_search.hpp"
#include "tools/scale/run_prediction.hpp"

namespace muonwalk::sim {

/// What a search found, as lines of at most 100 columns: the layouts with the time of a step, tokens per second and
/// GPU, and memory; where the time of the best one goes; and why the next one is slower.
std::vector<std::string> layouts_text(const LayoutSearch& search, const FoundLayouts& found);

/// What a search found, as JSON, all terms included, with a line end at the end. Every field has its unit in its name.
std::string layouts_json(const LayoutSearch& search, const FoundLayouts& found);

/// One prediction, term by term, with formulas, inputs and sources: time, then memory. At most 100 columns.
std::vector<std::string> explanation_text(const StepQuestion& question, const StepPrediction& prediction);

/// One prediction as JSON, with a line end at the end.
std::string explanation_json(const StepQuestion& question, const StepPrediction& prediction);

/// What Muon adds to a step of a run, as lines of at most 100 columns: both steps, the optimizer's own time, bytes by
/// collective, memory, the band, every term of the step, and what was taken where the file is silent.
std::vector<std::string> run_text(const TrainingRun& run, const RunAnswer& prediction,
                                  const std::pair<RunBand, RunBand>& band);

/// The same as JSON, "muonwalk-answer 1".
std::string run_json(const TrainingRun& run, const RunAnswer& prediction, const std::pair<RunBand, RunBand>& band);

}  // namespace muonwalk::sim
