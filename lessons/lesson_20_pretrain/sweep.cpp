#include <fmt/format.h>

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
  PretrainingRequest tried = request;
  const auto losses = [&](const std::string& name, const std::vector<float>& rates, float PretrainingRequest::*rate) {
    std::vector<Cell> cells = {name};
    for (const float each : rates) {
      tried.*rate = each;
      cells.push_back(fmt::format("{:.4f}", held_out_loss(tried, rank)));
    }
    return cells;
  };
  const auto rates_row = [](const std::string& name, const std::vector<float>& rates) {
    std::vector<Cell> cells = {name};
    for (const float rate : rates) cells.push_back(fmt::format("{}", rate));
    return cells;
  };
  const std::vector<float> alone = {0.0025f, 0.005f, 0.01f, 0.02f}, beside = {0.01f, 0.02f, 0.04f};
  Table table({{""}, {"", Side::right}, {"", Side::right}, {"", Side::right}, {"", Side::right}});
  tried.optimizer = "adamw";
  table.row(rates_row("AdamW alone, rate", alone));
  table.row(losses("held-out loss at the end", alone, &PretrainingRequest::adamw_lr));
  table.row({});
  tried.optimizer = "muon";
  table.row(rates_row("Muon, AdamW's rate beside it", beside));
  for (const float rate : beside) {
    tried.lr = rate;
    table.row(losses(fmt::format("held-out loss with Muon's rate {}", rate), beside, &PretrainingRequest::outer_lr));
  }
  for (const std::string& line : table.lines()) print_line(line);
  return 0;
}

}  // namespace muonwalk::sim
