#include "lessons/lesson_18_read_a_trace/compared_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string name_of(const ComparedRun& run) { return fmt::format("{}, {}", run.optimizer, run.grid.text()); }

bool on_grid(const ComparedRun& run, const char* optimizer, int dp, int tp) {
  return run.optimizer == optimizer && run.grid.dp() == dp && run.grid.tp() == tp;
}

// Elements of state in one copy of it: Muon's DP ranks share one, and of AdamW's each has its own.
double one_copy(const ComparedRun& run) {
  const double elements = static_cast<double>(run.state_elements);
  return run.optimizer == "Muon" ? elements : elements / run.grid.dp();
}

}  // namespace

ComparedRun compared_run(const std::string& optimizer, const Grid& grid, const TraceFile& file, const Summary& summary,
                         std::int64_t state_elements) {
  ComparedRun run{optimizer, grid, totals_of(file, summary), state_elements, ""};
  run.measured = fmt::format("measured on this machine: {}\n{}", name_of(run), joined(two_readings({file}, summary)));
  return run;
}

OwnRuns own_runs(const std::vector<ComparedRun>& runs) {
  const auto find = [&runs](const char* optimizer, int dp, int tp) -> const ComparedRun* {
    for (const ComparedRun& run : runs)
      if (on_grid(run, optimizer, dp, tp)) return &run;
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
  return joined(lines);
}

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

}  // namespace muonwalk::sim
