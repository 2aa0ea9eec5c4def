#include "sim/lesson_19/toy_model.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace muonwalk::sim {
namespace {

constexpr std::string_view kText =
    "A stage works on one part of the batch while its neighbour works on another, and nobody sees the whole. "
    "What comes out at the end is the same as if one of them had done everything alone, only sooner. ";

}  // namespace

GptTraining toy_training() {
  GptTraining training;
  GptConfig& model = training.config;
  model.vocabulary = 128;
  model.width = 16;
  model.layers = 4;
  model.heads = 4;
  model.kv_heads = 2;
  model.hidden = 32;
  model.tokens = 8;
  model.tied = true;
  model.pieces = 4;
  training.max_norm = 0.25f;
  return training;
}

MicroBatch toy_micro_batch(const GptTraining& training, int step, int number) {
  MicroBatch batch;
  for (Index s = 0; s < training.sequences; ++s) {
    const Index window = (Index{step} * training.micro_batches + number) * training.sequences + s;
    for (Index t = 0; t < training.config.tokens; ++t) {
      const auto at = static_cast<std::size_t>(window * training.config.tokens + t);
      batch.inputs.push_back(kText[at % kText.size()]);
      batch.targets.push_back(kText[(at + 1) % kText.size()]);
    }
  }
  return batch;
}

std::vector<MicroBatch> toy_batch(const GptTraining& training, int step) {
  std::vector<MicroBatch> all;
  for (int number = 0; number < training.micro_batches; ++number)
    all.push_back(toy_micro_batch(training, step, number));
  return all;
}

std::vector<Matrix> taken_apart(PartTensors tensors) {
  std::vector<Matrix> all;
  for_each_tensor(tensors, [&](Matrix& tensor) { all.push_back(std::move(tensor)); });
  return all;
}

void add_each(std::vector<Matrix>& sums, std::vector<Matrix> more) {
  if (sums.empty()) {
    sums = std::move(more);
    return;
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (Index k = 0; k < sums[i].size(); ++k) sums[i].data()[k] += more[i].data()[k];
}

void step_at_once(PartTensors& tensors, const PartTensors& gradients) {
  std::vector<const Matrix*> found;
  for_each_tensor(gradients, [&](const Matrix& gradient) { found.push_back(&gradient); });
  std::size_t next = 0;
  for_each_tensor(tensors, [&](Matrix& tensor) {
    if (next == found.size()) return;  // a tied copy, whose gradient is on its way
    const Matrix& gradient = *found[next++];
    for (Index k = 0; k < tensor.size(); ++k) tensor.data()[k] -= 0.1f * gradient.data()[k];
  });
}

}  // namespace muonwalk::sim
