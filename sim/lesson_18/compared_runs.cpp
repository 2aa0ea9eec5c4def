#include "sim/lesson_18/compared_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/analyser/output.hpp"
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
  OwnRuns own;
  if (runs.empty()) return own;
  const ComparedRun &adamw = runs.front(), &muon = runs.back();
  if (!on_grid(adamw, "AdamW", 4, 1) || !on_grid(muon, "Muon", 2, 2)) return own;
  own.bytes_ratio = static_cast<double>(muon.totals.sent_bytes) / static_cast<double>(adamw.totals.sent_bytes);
  own.state_ratio = one_copy(muon) / one_copy(adamw);
  return own;
}

std::string compared_runs_text(const std::vector<ComparedRun>& runs, const std::vector<PublishedClaim>& claims) {
  std::vector<std::vector<std::string>> rows = {
      {"runs", "calls", "events by name", "bytes sent", "state on all ranks"}};
  for (const ComparedRun& run : runs)
    rows.push_back({"  " + name_of(run), number_text(run.totals.calls), number_text(run.totals.events_by_name),
                    number_text(run.totals.sent_bytes), number_text(run.state_elements)});
  std::vector<std::string> lines = table_lines(rows, 1);
  if (!claims.empty()) {
    lines.push_back("");
    append(lines, published_text(claims, {}));
    lines.push_back("");
  }
  append(lines, published_claims_table(claims, own_runs(runs)));
  return joined(lines);
}

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

}  // namespace muonwalk::sim
