// A training step of a GPT on eight ranks against the same step on one: the processor time of all of them together.
// The ranks are threads that talk through memory, so what is added to one rank's work is what they do more than once,
// and what they copy for each other. Nothing here fails on a time.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "src/train/gpt_training.hpp"
#include "tests/optim/rank_threads.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// 3.5 million parameters, and batches of 4,096 tokens.
GptTraining small_training(bool adamw_alone) {
  GptTraining training;
  GptConfig& model = training.config;
  model.width = 256;
  model.layers = 4;
  model.heads = 8;
  model.kv_heads = 4;
  model.hidden = 704;
  model.tokens = 128;
  training.micro_batches = 16;
  training.sequences = 2;
  training.adamw_alone = adamw_alone;
  training.muon.newton_schulz.products = Products::chain;
  return training;
}

std::vector<MicroBatch> own_batch(const GptTraining& training, const Grid& grid, const Place& place) {
  const Range own = own_micro_batches(training.micro_batches, grid.dp(), place.dp);
  std::vector<MicroBatch> batch;
  for (Index i = own.begin; i < own.end; ++i) {
    MicroBatch each;
    for (Index t = 0; t < training.rows(); ++t) {
      each.inputs.push_back(static_cast<std::int32_t>((i * 31 + t * 7) % training.config.vocabulary));
      each.targets.push_back(static_cast<std::int32_t>((i * 31 + t * 7 + 7) % training.config.vocabulary));
    }
    batch.push_back(std::move(each));
  }
  return batch;
}

// The processor time of one step on all ranks, after one that warms everything up.
double seconds_of_step(const GptTraining& training, const Grid& grid) {
  double began = 0, ended = 0;
  run_ranks(grid, [&](TestRank& rank) {
    GptTrainer trainer(training, grid, rank.place);
    const TrainingGroups groups{rank.dp, rank.tp, rank.group("pp"), rank.world};
    const std::vector<MicroBatch> batch = own_batch(training, grid, rank.place);
    trainer.step(groups, batch, 1);
    rank.world.barrier();
    if (rank.place.rank == 0) began = processor_seconds();
    rank.world.barrier();
    trainer.step(groups, batch, 1);
    rank.world.barrier();
    if (rank.place.rank == 0) ended = processor_seconds();
    rank.world.barrier();
  });
  return ended - began;
}

}  // namespace

int main() {
  fmt::print("A training step, processor time of all ranks together, the least of 3; target for 8 ranks: 1.5\n");
  fmt::print("{:<22}{:>14}{:>10}{:>18}{:>10}\n", "", "Muon + AdamW", "ratio", "AdamW alone", "ratio");
  const std::vector<Grid> grids = {Grid(), Grid().dp(2).tp(2).pp(2), Grid().dp(4).tp(2), Grid().tp(4).pp(2),
                                   Grid().dp(8)};
  double one[2] = {0, 0};
  for (const Grid& grid : grids) {
    fmt::print("{:<22}", grid.text());
    for (const bool adamw : {false, true}) {
      double least = 0;
      for (int i = 0; i < 3; ++i) {
        const double seconds = seconds_of_step(small_training(adamw), grid);
        least = i == 0 ? seconds : std::min(least, seconds);
      }
      if (grid.size() == 1) one[adamw] = least;
      fmt::print(adamw ? "{:>16.2f} s{:>10.2f}" : "{:>12.2f} s{:>10.2f}", least, least / one[adamw]);
    }
    fmt::print("\n");
  }
}
