#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/muon_cost.hpp"
#include "tools/scale/term.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// What one stage of a pipeline holds.
struct Stage {
  int blocks = 0;          ///< All blocks, also those without weights.
  Index layers = 0;        ///< Transformer layers.
  bool embedding = false;  ///< The table of tokens is here.
  bool head = false;       ///< The product that gives logits is here.
  bool cast = false;       ///< Logits are turned into fp32 here.
  bool loss = false;       ///< The loss is taken here.
};

/// How the blocks of a model lie in `pp` stages. By cost (nanotron, models/base.py, build_model): a layer costs its
/// products' weights, the head vocabulary · width, all else nothing; a block goes to the present stage, and the next
/// block to the next stage once the costs so far are more than (stage + 1) / pp of all. Where the model has fewer
/// blocks than that takes, the last stages stay empty. Else: ⌈layers / pp⌉ layers each, embedding first, head last.
/// `pp` is at least 1.
std::vector<Stage> fill_stages(const ModelShape& model, int pp, const TrainingSoftware& software);

/// Why a run with this layout can't begin, however much memory there is: one sentence, or "" where it can. 1F1B needs
/// pp − 1 micro-batches, every stage a block, and every TP rank as many heads.
std::string why_it_cannot_run(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software);

/// The weights of the products of one layer, those that one token is multiplied with.
double product_weights(const ModelShape& model);

/// The parameters that one rank of a stage holds.
double stage_parameters(const ModelShape& model, const TrainingLayout& layout, const Stage& stage);

/// How many DP ranks have a copy of what one rank of a stage holds, in the mean over its parameters: dp of the dense
/// ones, but only dp / ep of the experts. They share the sum of gradients, and with ZeRO-1 the optimizer's state.
double copies_of(const ModelShape& model, const TrainingLayout& layout, const Stage& stage);

/// What is asked: one training step of a model, laid out over a cluster.
struct StepQuestion {
  const ModelShape& model;           ///< The model that is trained.
  const Cluster& cluster;            ///< Where it is trained.
  const TrainingSoftware& software;  ///< The program that trains it.
  TrainingLayout layout;             ///< A sensible one (require_sensible) for the cluster's nodes.
};

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
