#include <fmt/format.h>

#include <set>

#include "sim/cost_model/fitted_constants.hpp"
#include "sim/cost_model/refitting.hpp"
#include "sim/cost_model/validation.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

using Rows = std::vector<std::vector<std::string>>;
using Wanted = std::function<bool(const PublishedRun&)>;

// A part of the table: all layouts of a model, or of a number of nodes.
struct RunPart {
  std::string name;
  Wanted wanted;
};

std::vector<RunPart> parts_of(const PublishedRuns& runs) {
  std::vector<RunPart> parts;
  std::set<std::string> models;
  std::set<int> nodes;
  for (const PublishedRun& run : runs.runs) {
    if (models.insert(run.model).second)
      parts.push_back(
          {visible_name(run.model), [model = run.model](const PublishedRun& each) { return each.model == model; }});
    nodes.insert(run.layout.nodes);
  }
  for (const int count : nodes)
    parts.push_back(
        {count_text(count, "node"), [count](const PublishedRun& each) { return each.layout.nodes == count; }});
  return parts;
}

std::vector<std::string> score_cells(const std::string& name, const std::vector<RunOutcome>& outcomes) {
  const RateScores rates = rate_scores(outcomes);
  const FitScores fitting = fit_scores(outcomes);
  if (rates.runs == 0) return {name, "0"};
  return {name,
          number_text(static_cast<long long>(rates.runs)),
          percent_text(rates.error),
          percent_text(rates.within_quarter),
          fmt::format("{:.3f}", rates.rank),
          fmt::format("{:.3f}", rates.rank_median),
          fmt::format("{:.3f}", rates.picked),
          percent_text(rates.memory_error),
          fitting.failed > 0 ? fmt::format("{:.3f}", fitting.balanced_accuracy()) : "–"};
}

Rows score_rows(const char* first) {
  return {{first, "runs", "error", "within 25 %", "rank", "median", "picked", "memory", "fits"}};
}

}  // namespace

std::string target_table(const std::vector<RunOutcome>& outcomes) {
  Rows rows = {{"target", "reached", "wanted", ""}};
  for (const ValidationTarget& each : validation_targets(outcomes))
    rows.push_back({each.what, fmt::format("{:.3f}", each.reached),
                    fmt::format("{} {:.3f}", each.at_most ? "≤" : "≥", each.wanted), each.met() ? "met" : "MISSED"});
  return joined_table(rows, 1);
}

namespace {

std::string part_table(const PublishedRuns& runs, const std::vector<RunOutcome>& outcomes) {
  Rows rows = score_rows("clean runs");
  rows.push_back(score_cells("all", outcomes));
  rows.push_back(
      score_cells("up to 32 nodes", chosen(outcomes, [](const PublishedRun& run) { return run.layout.nodes <= 32; })));
  for (const RunPart& part : parts_of(runs)) rows.push_back(score_cells(part.name, chosen(outcomes, part.wanted)));
  return joined_table(rows, 1);
}

// Constants fitted to all other clean runs, and scores on those that were left out.
std::string held_out_table(const PublishedRuns& runs, const TrainingSoftware& software) {
  Rows rows = score_rows("held out");
  for (const RunPart& part : parts_of(runs)) {
    std::vector<const PublishedRun*> others;
    for (const PublishedRun& run : runs.runs)
      if (run.clean() && !part.wanted(run)) others.push_back(&run);
    const TrainingSoftware fitted = refitted(others, software);
    rows.push_back(score_cells(part.name, chosen(outcomes_of(runs, fitted), part.wanted)));
  }
  return joined_table(rows, 1);
}

std::string constant_lines() {
  std::string text = "Fitted, and valid for all models, layouts and numbers of nodes:\n";
  for (const FittedConstant& each : fitted_constants())
    for (const std::string& line :
         paragraph(fmt::format("{} = {:.4g}{}: {}", each.name, each.value,
                               each.unit == std::string("1") ? "" : fmt::format(" {}", each.unit), each.meaning),
                   2, 4))
      text += line + "\n";
  return text;
}

// What is missed, and what the runs show beside the constants.
std::string remark_lines() {
  std::string text;
  for (const char* remark :
       {"Missed: 64 nodes. The same layout takes one or five times as long there, most likely by the version of "
        "the software, which no column gives. One stage with TP over at most two nodes is reckoned on the slow "
        "path there, because most of its runs are.",
        "Missed: 1B on 8 nodes, where the layout that is picked was measured at half of its speed with ZeRO-0 and at "
        "all of it with ZeRO-1; and runs of 1B with ZeRO-0, DP and PP on 2 to 8 nodes, which failed with memory to "
        "spare. The target for fits leaves those out, the table below it does not.",
        "A run whose flag is stall is left out, except for fits. Where memory is nearly full, a stall is the "
        "allocator's work; the others have no explanation."})
    for (const std::string& line : paragraph(remark, 0, 2)) text += line + "\n";
  return text;
}

}  // namespace

std::string validation_text(const PublishedRuns& runs, bool held_out) {
  if (!runs.has_results)
    throw UsageError(
        "the table of runs has no results to compare with; it needs the columns status, tokens_per_s and "
        "memory_gb");
  const TrainingSoftware& software = software_of("nanotron");
  const std::vector<RunOutcome> outcomes = outcomes_of(runs, software);
  std::string text = target_table(outcomes) + "\n\n" + part_table(runs, outcomes) + "\n";
  if (held_out) text += "\n" + held_out_table(runs, software) + "\n";
  return text + "\n" + remark_lines() + "\n" + constant_lines();
}

}  // namespace muonwalk::sim
