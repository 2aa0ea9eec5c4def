#include "lessons/lesson_18_read_a_trace/compared_runs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string name_of(const ComparedRun& run) { return fmt::format("{}, {}", run.optimizer, run.grid.text()); }

// Elements of state in one copy of it: Muon's DP ranks share one, and of AdamW's each has its own.
double one_copy(const ComparedRun& run) {
  const double elements = static_cast<double>(run.state_elements);
  return run.optimizer == "Muon" ? elements : elements / run.grid.dp();
}

}  // namespace

ComparedRun compared_run(const std::string& optimizer, const Grid& grid, const TraceFile& file, const Summary& summary,
                         std::int64_t state_elements) {
  ComparedRun run{optimizer, grid, totals_of(file, summary), state_elements, ""};
  run.measured =
      fmt::format("measured on this machine: {}\n{}", name_of(run), lines_text(two_readings({file}, summary)));
  return run;
}

OwnRuns own_runs(const std::vector<ComparedRun>& runs) {
  const auto find = [&runs](const char* optimizer, int dp, int tp) -> const ComparedRun* {
    for (const ComparedRun& run : runs)
      if (run.optimizer == optimizer && run.grid.dp() == dp && run.grid.tp() == tp) return &run;
    return nullptr;
  };
  const ComparedRun *adamw = find("AdamW", 4, 1), *muon = find("Muon", 2, 2), *equal = find("Muon", 4, 1);
  const auto bytes_of = [](const ComparedRun& run) { return static_cast<double>(run.totals.sent_bytes); };
  OwnRuns own;
  if (adamw != nullptr && muon != nullptr) own.bytes_ratio = bytes_of(*muon) / bytes_of(*adamw);
  if (adamw != nullptr && equal != nullptr) own.equal_grid_ratio = bytes_of(*equal) / bytes_of(*adamw);
  if (adamw != nullptr && muon != nullptr) own.state_ratio = one_copy(*muon) / one_copy(*adamw);
  return own;
}

std::string compared_runs_text(const std::vector<ComparedRun>& runs) {
  Table table({{"runs"},
               {"calls", number_text},
               {"events by name", number_text},
               {"bytes sent", number_text},
               {"state on all ranks", number_text}},
              2);
  for (const ComparedRun& run : runs)
    table.row({name_of(run), run.totals.calls, run.totals.events_by_name, run.totals.sent_bytes, run.state_elements});
  std::vector<std::string> lines = table.lines();
  append(lines, published_claims_table(own_runs(runs)));
  return lines_text(lines);
}

const std::vector<ReadAgain> kReadAgain = {
    {"communication time, Muon / AdamW", "0.57", "0.594", 0.005, "kernels of rank 0, each once", true},
    {"calls of collectives, Muon and AdamW", "40 and 110", "10 and 25", 0.5,
     "a call is one kernel; its operator and its ranges, which bear its name, are not further calls"},
    {"communication per step, of both", "139.5 and 245.8 ms", "13.75 and 23.16 ms", 0.05,
     "kernels, each once, divided by the steps in the file"},
    {"the optimizer's share of a step, Muon", "1.1 %", "61.0 %", 0.05,
     "its time on the device, in that of the device; published: on the host, which only starts it"},
    {"forward and backward, of both", "271 and 281 ms", "157.85 and 149.40 ms", 0.5,
     "kernels that compute, united; published: half of the ranges of host and device together"},
    {"async against sync, times slower", "2.1 and 1.5", "0.90 and 0.99", 0.05,
     "how long the device took in all; a call beside computation takes longer, and yet saves time"}};

bool ReadAgain::holds() const { return std::abs(std::stod(again) - std::stod(published)) <= nearness; }

std::vector<std::string> published_claims_table(const OwnRuns& own) {
  Table table({{"claims"}, {"published"}, {"read again"}, {"verdict"}}, 2);
  std::vector<std::string> rules = {""};
  const auto verdict = [](bool holds) { return holds ? "holds" : "doesn't hold"; };
  for (const ReadAgain& each : kReadAgain) {
    table.row({each.words, each.published, each.again, verdict(each.holds())});
    rules.emplace_back(each.rule);
    if (each.of_bytes && own.bytes_ratio && own.equal_grid_ratio)
      rules.back() += fmt::format("; in bytes, our own runs: {:.3f} × on these grids, {:.3f} × on dp 4",
                                  *own.bytes_ratio, *own.equal_grid_ratio);
  }
  const std::string state = own.state_ratio ? fmt::format("{:.0f} %", 100 * *own.state_ratio) : "run all layouts";
  table.row(
      {"state per weight, Muon / AdamW", "50 %", state, own.state_ratio ? verdict(state == "50 %") : "can't tell"});
  rules.emplace_back("elements of one copy of the state, in our own runs");
  table.row({"the sweet spot is dp 2 × tp 2", "best of 3", "1 of 3", "can't tell"});
  rules.emplace_back("it takes a trace of each grid, and here is one");
  std::vector<std::string> lines;
  const std::vector<std::string> cells = table.lines();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(cells[i]);
    if (i > 0) lines.push_back("    " + rules[i]);
  }
  // The link is a line of its own, so that it can be followed.
  append(lines, wrap_text("source  Jen Wei, \"Distributed Muon: Field Notes & Reproducibility Artifacts\", 2025, as we "
                          "read its four traces; `muonwalk-trace published` reads them anew",
                          8));
  lines.emplace_back("        https://huggingface.co/datasets/bird-of-paradise/muon-distributed-reproducibility");
  return lines;
}

}  // namespace muonwalk::sim
