#include "lessons/lesson_20_pretrain/sweep.hpp"

#include <fmt/format.h>

#include "lessons/lesson_20_pretrain/serial_run.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

int print_sweep(const PretrainingRequest& request, const RankInfo& rank) {
  const auto held_out = [&rank](const PretrainingRequest& tried) {
    const Pretraining run = requested_pretraining(tried, rank);
    SerialRun serial(run, run.ways[0]);
    serial.report(run.steps);
    return fmt::format("{:.4f}", serial.curve().validations.back().held_out);
  };
  PretrainingRequest tried = request;
  tried.optimizer = "adamw";
  std::vector<std::vector<std::string>> rows = {{"AdamW alone, rate"}, {"held-out loss at the end"}, {}};
  for (const float rate : {0.0025f, 0.005f, 0.01f, 0.02f}) {
    tried.adamw_lr = rate;
    rows[0].push_back(fmt::format("{}", rate));
    rows[1].push_back(held_out(tried));
  }
  tried.optimizer = "muon";
  rows.push_back({"Muon, AdamW's rate beside it"});
  for (const float outer : {0.01f, 0.02f, 0.04f}) rows[3].push_back(fmt::format("{}", outer));
  for (const float rate : {0.01f, 0.02f, 0.04f}) {
    rows.push_back({fmt::format("held-out loss with Muon's rate {}", rate)});
    for (const float outer : {0.01f, 0.02f, 0.04f}) {
      tried.lr = rate;
      tried.outer_lr = outer;
      rows.back().push_back(held_out(tried));
    }
  }
  for (const std::string& line : table_lines(rows, 1)) print_line(line);
  return 0;
}

}  // namespace muonwalk::sim
