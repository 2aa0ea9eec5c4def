#include "lessons/lesson_19_pipeline_3d/toy_model.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "src/numerics/tree_sum.hpp"
#include "src/optim/named_slice.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::string_view kText =
    "A stage works on one part of the batch while its neighbour works on another, and nobody sees the whole. "
    "What comes out at the end is the same as if one of them had done everything alone, only sooner. ";

// The micro-batch with this number of one step.
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

}  // namespace

GptTraining toy_training(const RankInfo& rank) {
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
  training.seed = rank.seed;
  training.muon = muon_settings(rank.precision, rank.threads, rank.products);
  return training;
}

MicroBatch own_tokens(const GptTraining& training, const RankInfo& rank, int step, int number) {
  const Range own = own_micro_batches(training.micro_batches, rank.grid.dp(), rank.place.dp);
  return toy_micro_batch(training, step, static_cast<int>(own.begin) + number);
}

std::vector<MicroBatch> toy_batch(const GptTraining& training, int step) {
  std::vector<MicroBatch> all;
  for (int number = 0; number < training.micro_batches; ++number)
    all.push_back(toy_micro_batch(training, step, number));
  return all;
}

void append_named(const std::string& of, const GptTraining& training, const RankInfo& rank,
                  std::vector<Matrix> matrices, std::vector<NamedMatrix>& all) {
  const ModelPart part = stage_part(training.config, rank.grid.pp(), rank.place.pp);
  const std::vector<Parameter> parameters = part_parameters(training.config, part, rank.grid.tp());
  std::vector<NamedMatrix> named;
  for (std::size_t i = 0; i < parameters.size(); ++i) named.push_back({parameters[i].name, std::move(matrices[i])});
  append_of(of, std::move(named), all);
}

std::string stage_text(const GptTraining& training, const RankInfo& rank) {
  const ModelPart part = stage_part(training.config, rank.grid.pp(), rank.place.pp);
  Index here = 0, all = 0;
  for (const Parameter& each : part_parameters(training.config, part, rank.grid.tp()))
    here += tp_shape(each, rank.grid.tp()).size();
  for (const Parameter& each : gpt_parameters(training.config)) all += each.shape.size();
  std::vector<std::string> what;
  if (part.first) what.push_back("embedding");
  what.push_back("layers " + range_text(part.layers));
  if (part.last) what.push_back(training.config.tied ? "norm, the embedding as output" : "norm, output");
  return fmt::format("{}: {} of {} parameters", fmt::join(what, ", "), number_text(here), number_text(all));
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
  for (std::size_t i = 0; i < sums.size(); ++i) add_onto(sums[i], more[i]);
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
