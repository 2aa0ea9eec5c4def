// What a step of training and a checkpoint would call, compute and hold on some ranks: every operation, as it is kept.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "src/train/checkpoint_pieces.hpp"
#include "src/train/gather_checkpoint.hpp"
#include "src/train/gpt_training.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/pipeline/model_case.hpp"

using namespace muonwalk;

namespace {

std::string operations_text(const Plan& plan) {
  std::string text;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation))
      text += fmt::format("    {}{}, {} × {}, {:.9g} operations\n", work->phase,
                          work->parameter < 0 ? "" : fmt::format(" {}", work->parameter), work->shape.rows,
                          work->shape.cols, work->flops);
    else if (const Call* call = std::get_if<Call>(&operation))
      text += fmt::format("    {}\n", muonwalk::text(*call));
    else
      text += fmt::format("    {} B: {}\n", std::get<Memory>(operation).bytes(),
                          std::string(std::get<Memory>(operation).what));
  }
  return text;
}

// A tied embedding on the first and the last of three stages, fewer heads of keys than TP ranks, two buckets.
GptTraining tied_training() {
  GptTraining training;
  training.config.vocabulary = 24;
  training.config.width = 16;
  training.config.layers = 4;
  training.config.heads = 8;
  training.config.kv_heads = 1;
  training.config.hidden = 24;
  training.config.tokens = 5;
  training.config.pieces = 8;
  training.config.tied = true;
  training.micro_batches = 4;
  training.sequences = 2;
  training.schedule = PipelineSchedule::one_f_one_b;
  training.bucket_capacity = 500;
  return training;
}

// Experts, and an output layer of its own; vectors decay.
GptTraining expert_training() {
  GptTraining training = tied_training();
  training.config.layers = 2;
  training.config.kv_heads = 4;
  training.config.tied = false;
  training.config.experts = 3;
  training.config.chosen = 2;
  training.schedule = PipelineSchedule::gpipe;
  training.decay_vectors = true;
  training.bucket_capacity = 0;
  return training;
}

std::string plans_text(const GptTraining& training, const Grid& grid) {
  require_trainable(training, grid);
  std::vector<Layout> stages;
  std::vector<StateForm> forms;
  for (int stage = 0; stage < grid.pp(); ++stage) {
    stages.push_back(stage_layout(training, grid, stage));
    const Place place = grid.place(grid.rank(0, 0, stage));
    const ModelPart part = stage_part(training.config, grid.pp(), stage);
    const auto optimizer =
        started_optimizer(training, route(part_parameters(training.config, part, grid.tp()), training_groups(training)),
                          stages.back(), place);
    forms.push_back(StateForm::of(optimizer->save()));
  }
  std::string text = fmt::format("{}, {} micro-batches\n", grid.text(), training.micro_batches);
  for (const int rank : {0, grid.size() - 1}) {
    const Place place = grid.place(rank);
    text += fmt::format("  rank {}: a step, whose norm leaves out {}\n", rank,
                        counted_elsewhere(training, grid, place.pp).size());
    text += operations_text(training_plan(training, grid, place));
    text += fmt::format("  rank {}: a checkpoint\n", rank);
    text += operations_text(gather_checkpoint_plan(stages, forms, place));
  }
  return text;
}

}  // namespace

TEST_CASE("training_plan, gather_checkpoint_plan: every operation of some ranks is what is kept") {
  muonwalk::testing::expect_golden("training_plans.txt", plans_text(tied_training(), Grid().dp(2).tp(2).pp(3)) +
                                                             plans_text(expert_training(), Grid().dp(1).tp(2).pp(2)) +
                                                             plans_text(expert_training(), Grid().dp(2)));
}
