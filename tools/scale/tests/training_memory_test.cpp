// The memory of a training run: formulas by hand, what a stage holds, and what ZeRO-1 saves.
#include "tools/scale/training_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/near.hpp"
#include "tools/scale/stage_filling.hpp"
#include "tools/scale/tests/training_case.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

StepQuestion question_of(const char* model, const TrainingLayout& layout) {
  static const Cluster cluster = cluster_of("h100-efa");
  return {model_shape(model), cluster, nanotron(), layout};
}

std::vector<Term> bytes_of(const char* model, const TrainingLayout& layout, int stage) {
  return stage_bytes(question_of(model, layout), stage);
}

constexpr double kSequence = 4096, kVocabulary = 131072;

}  // namespace

TEST_CASE("stage_bytes: 1B with DP alone, every term by hand") {
  const std::vector<Term> terms = bytes_of("1B", layout_of(1, 8, 1, 1, 1, 2, 16), 0);
  const double held = 16 * (4.0 * 2048 * 2048 + 3.0 * 2048 * 8192) + kVocabulary * 2048;
  CHECK(amount(terms, &terms::weights) == held * 2);
  CHECK(amount(terms, &terms::gradients) == held * 4);
  CHECK(amount(terms, &terms::fresh_gradients) == held * 2);
  CHECK(amount(terms, &terms::master_weights) == held * 4 / 8);
  CHECK(amount(terms, &terms::two_moments) == held * 8 / 8);
  CHECK(amount(terms, &terms::activations) == 16 * 2 * kSequence * (20.0 * 2048 + 8.0 * 8192));
  CHECK(amount(terms, &terms::logits) == 2 * kSequence * kVocabulary * 14);
  CHECK(amount(terms, &terms::working_layer) == 2 * kSequence * 8 * 2048);
  CHECK(terms.size() == 8);
}

TEST_CASE("stage_bytes: stages of a pipeline hold min(m, pp − stage) micro-batches, and the last ones the logits") {
  // 1B in eight stages: E3 3 2 3 2 3 H CX.
  const TrainingLayout layout = layout_of(1, 1, 1, 8, 0, 1, 256);
  const double layer = kSequence * (20.0 * 2048 + 8.0 * 8192), logits = kSequence * kVocabulary;
  CHECK(amount(bytes_of("1B", layout, 0), &terms::activations) == 3 * 8 * layer);
  CHECK(amount(bytes_of("1B", layout, 2), &terms::activations) == 2 * 6 * layer);
  CHECK(amount(bytes_of("1B", layout, 5), &terms::logits) == 0);
  CHECK(amount(bytes_of("1B", layout, 6), &terms::logits) == logits * (2 * 2 + 2));
  CHECK(amount(bytes_of("1B", layout, 7), &terms::logits) == logits * (12 + 2));
  TrainingLayout few = layout;
  few.accumulation = 7;
  CHECK(amount(bytes_of("1B", few, 0), &terms::activations) == 3 * 7 * layer);
}

TEST_CASE("stage_bytes: inputs gathered from TP ranks stay, in part on the slow path, and are not counted to fit") {
  const double gathered = 4.0 * 4096 * kSequence * (1 - 1.0 / 8);
  CHECK(amount(bytes_of("8B", layout_of(1, 1, 8, 1, 0, 1, 256), 0), &terms::gathered_inputs) == 32 * gathered);
  // Eleven stages' worth of 80B would say the same: 8B in four stages, 9 layers first, 4 in flight, half of them kept.
  const TrainingLayout slow = layout_of(4, 1, 8, 4, 0, 1, 256);
  CHECK(amount(bytes_of("8B", slow, 0), &terms::gathered_inputs) == near(9 * 4 * 0.5 * gathered));
  CHECK(amount(bytes_of("8B", layout_of(4, 1, 32, 1, 0, 1, 256), 0), &terms::gathered_inputs) > 0);
  CHECK(amount(bytes_of("8B", layout_of(8, 1, 32, 2, 0, 1, 256), 0), &terms::gathered_inputs) == 0);
  CHECK(amount(training_bytes(question_of("8B", slow)), &terms::gathered_inputs) == 0);
}

TEST_CASE("stage_bytes: with full recomputation a layer keeps its input alone, and one layer's rest while it works") {
  TrainingLayout layout = layout_of(1, 8, 1, 1, 1, 2, 16);
  layout.recomputation = Recomputation::full;
  const std::vector<Term> terms = bytes_of("1B", layout, 0);
  CHECK(amount(terms, &terms::activations) == 16 * 2 * kSequence * 2 * 2048);
  CHECK(amount(terms, &terms::working_layer) == 2 * kSequence * (8 * 2048 + 20 * 2048 + 8 * 8192));
}

TEST_CASE("memory of any layout: the sums without terms are those of the terms, and ZeRO-1 saves what it should") {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  CAPTURE(seed);
  for (int i = 0; i < 200; ++i) {
    const auto power = [&random](int most) { return 1 << std::uniform_int_distribution<int>(0, most)(random); };
    TrainingLayout layout = layout_of(64, 1, power(5), power(4), 0, power(3), power(6));
    layout.dp = 512 / (layout.tp * layout.pp);
    const std::string name = model_shape_names()[static_cast<std::size_t>(i) % model_shape_names().size()];
    CAPTURE(name);
    CAPTURE(text(layout));
    const StepQuestion question = question_of(name.c_str(), layout);
    const ModelShape& model = question.model;
    double peak = 0;
    for (int stage = 0; stage < layout.pp; ++stage) {
      const std::vector<Term> terms = bytes_of(name.c_str(), layout, stage);
      peak = std::max(peak, total(terms));
      TrainingLayout sharded = layout;
      sharded.zero = 1;
      const double saved = total(terms) - total(bytes_of(name.c_str(), sharded, stage));
      const Stage held = fill_stages(model, layout.pp, nanotron())[static_cast<std::size_t>(stage)];
      CHECK(saved == near(12 * stage_parameters(model, layout, held) * (1 - 1.0 / layout.dp), 1e-6));
    }
    CHECK(peak_bytes(question) == near(peak, 1e-12));
    CHECK(total(training_bytes(question)) <= peak * (1 + 1e-12));
  }
}

TEST_CASE("fits: up to the usable share of the card") {
  const Cluster cluster = cluster_of("h100-efa");
  CHECK(fits(66 * kGibibyte, cluster, nanotron()));
  CHECK(!fits(66.01 * kGibibyte, cluster, nanotron()));
  int transient = 0;
  for (const Term& term : bytes_of("8B", layout_of(1, 1, 8, 1, 0, 1, 256), 0))
    transient += term.kind->when == TermKind::transient ? 1 : 0;
  CHECK(transient == 4);
}
