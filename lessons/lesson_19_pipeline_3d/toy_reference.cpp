#include "lessons/lesson_19_pipeline_3d/toy_reference.hpp"

#include <utility>

#include "src/numerics/running_tree_sum.hpp"
#include "src/optim/named_slice.hpp"

namespace muonwalk::sim {
namespace {

constexpr PipelineSchedule kBoth[] = {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b};

}  // namespace

std::vector<NamedMatrix> serial_gradients(const GptTraining& training, const RankInfo& rank) {
  const SerialGptTrainer untrained(training);
  const PartTensors model = untrained.tensors();
  const Range own = own_micro_batches(training.micro_batches, rank.grid.dp(), rank.place.dp);
  RunningTreeSum<Matrix> sum;
  for (Index i = 0; i < own.size(); ++i) {
    const MicroBatch tokens = toy_micro_batch(training, 0, static_cast<int>(own.begin + i));
    sum.add(i, serial_leaf(training.config, model, tokens, training.scale()).gradients);
  }
  std::vector<Matrix> whole = sum.take();
  std::vector<NamedMatrix> named;
  for (std::size_t p = 0; p < whole.size(); ++p) named.push_back({untrained.weights()[p].name, std::move(whole[p])});

  std::vector<NamedMatrix> both;
  for (const PipelineSchedule schedule : kBoth)
    append_of(pipeline_schedule_name(schedule), stage_slices(training, rank.grid, rank.place, named), both);
  return both;
}

Flat most_activations(const GptTraining& training, const Grid& grid, const Place& place) {
  const ModelPart part = stage_part(training.config, grid.pp(), place.pp);
  const int each = training.micro_batches / grid.dp();
  Flat most;
  for (const PipelineSchedule schedule : kBoth)
    most.push_back(static_cast<float>(most_in_flight(schedule, grid.pp(), place.pp, each) *
                                      activation_elements(training.config, part, grid.tp(), training.rows())));
  return most;
}

}  // namespace muonwalk::sim
