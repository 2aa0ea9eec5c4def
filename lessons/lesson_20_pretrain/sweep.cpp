#include <fmt/format.h>

#include <optional>

#include "lessons/lesson_20_pretrain/loss_curves.hpp"
#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "sim/terminal/progress_line.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/text/table.hpp"

namespace muonwalk::sim {
namespace {

double held_out_loss(const PretrainingRequest& request, const RankInfo& rank) {
  const Pretraining run = requested_pretraining(request, rank);
  const GptTraining& training = run.ways[0].training;
  SerialGptTrainer trainer(training);
  ProgressLine progress(run.ways[0].name, run.steps);
  for (int step = 1; step <= run.steps; ++step) {
    trainer.step(run.batch(training, step, {0, training.micro_batches}), learning_rate_factor(run.rates, step));
    progress.at(step);
  }
  return validation_loss(training.config, trainer.tensors(), run.corpus);
}

}  // namespace

int print_sweep(const PretrainingRequest& request, const RankInfo& rank) {
  Table table({{"Muon's rate", Side::right},
               {"AdamW's rate", Side::right},
               {fmt::format("held-out loss of {} seeds, mean", kSweptSeeds), Digits{4}},
               {"smallest", Digits{4}},
               {"largest", Digits{4}}});
  const auto row = [&](PretrainingRequest tried, std::optional<float> muon, float adamw) {
    std::vector<double> losses;
    RankInfo seeded = rank;
    for (int i = 0; i < kSweptSeeds; ++i, ++seeded.seed) losses.push_back(held_out_loss(tried, seeded));
    const Spread spread = spread_of(losses);
    table.row({muon ? fmt::format("{}", *muon) : "-", fmt::format("{}", adamw), spread.mean, spread.smallest,
               spread.largest});
  };
  PretrainingRequest tried = request;
  tried.optimizer = "adamw";
  for (const float rate : {0.0025f, 0.0035f, 0.005f, 0.007f, 0.01f, 0.014f, 0.02f, 0.028f, 0.04f}) {
    tried.adamw_lr = rate;
    row(tried, std::nullopt, rate);
  }
  tried.optimizer = "muon";
  for (const float muon : {0.01f, 0.02f, 0.04f})
    for (const float beside : {0.01f, 0.02f, 0.04f}) {
      tried.lr = muon;
      tried.outer_lr = beside;
      row(tried, muon, beside);
    }
  for (const std::string& line : table.lines()) print_line(line);
  return 0;
}

}  // namespace muonwalk::sim
