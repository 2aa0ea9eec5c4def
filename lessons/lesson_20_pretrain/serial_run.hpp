#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lessons/lesson_20_pretrain/loss_curves.hpp"
#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "sim/terminal/progress_line.hpp"

namespace muonwalk::sim {

/// The reference: one process that trains in one of the ways, without an interruption. It takes each step once, when
/// somebody first asks for it, and validates on its way.
class SerialRun {
 public:
  /// Before the first step. Both must outlive it.
  SerialRun(const Pretraining& run, const TrainingWay& way);

  /// What a step told, counted from 1.
  const StepReport& report(int step);
  /// All weights after a step. Throws std::logic_error for a step that the reference is beyond.
  const std::vector<NamedMatrix>& weights_after(int step);
  /// All weights after one step more than the run has, with the batch and the rate of its last one, as if `skipped`
  /// other steps had been counted before it.
  const std::vector<NamedMatrix>& weights_later(int skipped);
  /// Of its model.
  const GptConfig& config() const { return way_.training.config; }
  /// The losses so far.
  const LossCurve& curve() const { return curve_; }
  /// The model after the last step that was taken, not counting the one of weights_later.
  PartTensors model() const { return later_ ? before_later_ : trainer_.tensors(); }

 private:
  void train_up_to(int step);
  void validate();

  const Pretraining& run_;
  const TrainingWay& way_;
  SerialGptTrainer trainer_;
  std::vector<StepReport> reports_;
  bool later_ = false;
  PartTensors before_later_;
  LossCurve curve_;
  ProgressLine progress_;  // on a terminal
};

/// The losses of several runs so far.
std::vector<LossCurve> curves_of(const std::vector<std::unique_ptr<SerialRun>>& runs);

/// Bytes that the model finds most likely behind a beginning, one after the other; of equally likely ones, the
/// smallest. What is not printable ASCII becomes a dot. Each is chosen by the whole text before it, as far as the model
/// can see.
std::string greedy_text(const GptConfig& config, const PartTensors& model, const std::string& beginning, int bytes);

/// Singular values of a matrix as shares of the largest: `shown` of them (at least 2), evenly spread from the first to
/// the last.
std::string spectrum_text(const Matrix& matrix, int shown);

/// The spectrum of the first layer's queries, and what a model writes behind a beginning, each as a line that begins
/// with the way's name.
/// @{
std::string spectrum_line(const SerialRun& run);
std::string written_line(const SerialRun& run, const std::string& beginning);
/// @}

}  // namespace muonwalk::sim
