#include "lessons/lesson_20_pretrain/serial_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/numerics/newton_schulz.hpp"

namespace muonwalk::sim {

SerialRun::SerialRun(const Pretraining& run, const TrainingWay& way)
    : run_(run), way_(way), trainer_(way.training), curve_{way.name, {}, {}}, progress_(way.name, run.steps) {}

void SerialRun::validate() {
  const PartTensors model = trainer_.tensors();
  curve_.validations.push_back({static_cast<int>(reports_.size()),
                                validation_loss(way_.training.config, model, run_.corpus),
                                validation_loss(way_.training.config, model, run_.other)});
}

void SerialRun::train_up_to(int step) {
  if (reports_.empty() && curve_.validations.empty()) validate();
  while (static_cast<int>(reports_.size()) < step) {
    const int next = static_cast<int>(reports_.size()) + 1;
    reports_.push_back(trainer_.step(run_.batch(way_.training, next, {0, way_.training.micro_batches}),
                                     learning_rate_factor(run_.rates, next)));
    curve_.training.push_back(reports_.back().loss);
    if (run_.validates(next)) validate();
    progress_.at(next);
  }
}

const StepReport& SerialRun::report(int step) {
  train_up_to(step);
  return reports_.at(static_cast<std::size_t>(step - 1));
}

const std::vector<NamedMatrix>& SerialRun::weights_after(int step) {
  train_up_to(step);
  if (static_cast<int>(reports_.size()) != step || later_)
    throw std::logic_error(fmt::format("the weights after step {} are gone", step));
  return trainer_.weights();
}

const std::vector<NamedMatrix>& SerialRun::weights_later(int skipped) {
  train_up_to(run_.steps);
  if (!later_) {
    before_later_ = trainer_.tensors();
    trainer_.skip_steps(skipped);
    trainer_.step(run_.batch(way_.training, run_.steps, {0, way_.training.micro_batches}),
                  learning_rate_factor(run_.rates, run_.steps));
    later_ = true;
  }
  return trainer_.weights();
}

std::vector<LossCurve> curves_of(const std::vector<std::unique_ptr<SerialRun>>& runs) {
  std::vector<LossCurve> all;
  for (const auto& run : runs) all.push_back(run->curve());
  return all;
}

std::string greedy_text(const GptConfig& config, const PartTensors& model, const std::string& beginning, int bytes) {
  std::vector<std::int32_t> tokens;
  for (const char letter : beginning) tokens.push_back(static_cast<unsigned char>(letter));
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    const auto seen = std::min(static_cast<std::ptrdiff_t>(tokens.size()), static_cast<std::ptrdiff_t>(config.tokens));
    const Matrix logits = next_logits(config, model, {tokens.end() - seen, tokens.end()});
    std::int32_t best = 0;
    for (Index token = 1; token < logits.cols(); ++token)
      if (logits(0, token) > logits(0, best)) best = static_cast<std::int32_t>(token);
    tokens.push_back(best);
    text += best >= ' ' && best <= '~' ? static_cast<char>(best) : '.';
  }
  return text;
}

std::string spectrum_text(const Matrix& matrix, int shown) {
  const std::vector<double> values = singular_values(matrix);
  const std::size_t last = values.size() - 1;
  std::string text;
  for (int i = 0; i < shown; ++i) {
    const double value = values[last * static_cast<std::size_t>(i) / static_cast<std::size_t>(shown - 1)];
    text += fmt::format("{}{:.3f}", text.empty() ? "" : "  ", value / values[0]);
  }
  return text;
}

std::string spectrum_line(const SerialRun& run) {
  constexpr int kShown = 8;
  return fmt::format("{:13} σ / σ₁ of layer 0's queries: {}", run.curve().name,
                     spectrum_text(run.model().layers.at(0).query, kShown));
}

std::string written_line(const SerialRun& run, const std::string& beginning) {
  constexpr int kWritten = 70;
  return fmt::format("{:13} {}…", run.curve().name,
                     beginning + greedy_text(run.config(), run.model(), beginning, kWritten));
}

}  // namespace muonwalk::sim
