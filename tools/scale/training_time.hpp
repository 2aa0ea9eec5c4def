#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tools/scale/muon_cost.hpp"
#include "tools/scale/training_memory.hpp"

namespace muonwalk::sim {

/// The seconds of one step of training with AdamW, term by term; their sum is the step. A pipeline of p stages runs m
/// micro-batches in 1F1B. That takes m slots of the slowest stage, one slot of each other stage (divided by the chunks
/// of a stage, where stages are interleaved; Narayanan et al. 2021), and what comes after the last micro-batch on the
/// stage where that takes longest. A slot is what the accelerator or the host needs, whichever is longer. A size
/// outside those of the runs that constants were fitted to marks its term as extrapolated.
std::vector<Term> training_seconds(const StepQuestion& question);

/// The sum of these terms without the terms themselves, for searches over many layouts.
double step_seconds(const StepQuestion& question);

/// One step of training, predicted.
struct StepPrediction {
  std::vector<Term> seconds;                 ///< What the slowest stage spends them on, one after the other.
  std::vector<Term> bytes;                   ///< Memory at its peak, on the fullest stage.
  bool fits = false;                         ///< Whether that fits into the accelerator's memory.
  double tokens_per_second = 0;              ///< The speed of the whole cluster.
  std::optional<MuonShare> muon = {};        ///< Muon's work over the model's; nothing with AdamW.
  double muon_seconds = 0;                   ///< What Muon adds to the step.
  std::pair<double, double> muon_band = {};  ///< The least and the most of that (Term::band).

  double step_seconds() const { return total(seconds); }
};

/// "T · m / B = 5 · 3,370 / 4,194,304 = 0.40 %, × 2.03 …": Muon's overhead as a formula, and what it is in time.
std::string muon_share_text(const StepPrediction& prediction);

/// A step with AdamW for all parameters.
StepPrediction predict_adamw(const StepQuestion& question);

/// A step with Muon for the matrices inside of the layers, and AdamW for the rest: the same step with what Muon adds to
/// it (muon_cost), one momentum in place of two moments, and what it holds for a moment.
StepPrediction predict_muon(const StepQuestion& question, const MuonSetup& setup);

/// A step with Muon, whose cost is known already.
StepPrediction predict_muon(const StepQuestion& question, const MuonCost& muon);

}  // namespace muonwalk::sim
