#include "lessons/lesson_21_scale_out/scale_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/optim/full_step.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "tools/scale/collective_time.hpp"
#include "tools/scale/comparison.hpp"
#include "tools/scale/layout_search.hpp"
#include "tools/scale/muon_cost.hpp"
#include "tools/scale/published_runs.hpp"
#include "tools/scale/published_steps.hpp"
#include "tools/scale/validation.hpp"

namespace muonwalk::sim {
namespace {

constexpr const char* kModel = "llama-7b";
constexpr int kMostNodes = 64;  // of the published runs
constexpr int kSizes[] = {8, 32, 256, 4096, 100000};
constexpr int kTp = 2;  // of the layout of which the promises were measured

// ── Machines like the one that was measured ──

// The parts of a step on the rank that has most of Newton–Schulz: all of its plan, with messages sent as Muonwalk does.
struct PlanParts {
  double messages = 0, bytes = 0, newton_schulz = 0;
};

PlanParts parts_on_machines(int ranks) {
  const Cluster cluster = cluster_of("epyc-vm");
  const NetworkLevel& link = cluster.levels.front();
  const Strategy by_work = owner_by_work();
  const Layout layout =
      by_work.lay_out(stage_matrices(model_shape(kModel), 1).dense, Grid().dp(ranks / kTp).tp(kTp), 0);
  // Matrices are dealt out from the largest on, to DP rank 0 first, so nobody has more.
  const Plan plan = by_work.optimizer(layout, MuonSettings(), 0)->plan(layout, layout.grid.place(0));
  PlanParts parts;
  for (const PlannedCall& call : calls_of(plan)) {
    parts.messages += static_cast<double>(call.traffic.messages_sent) * link.latency_seconds;
    parts.bytes += static_cast<double>(call.traffic.bytes_sent) / link.bytes_per_second;
  }
  const double work = flops(plan, phases::orthogonalize), products = 15.0 * count(plan, phases::orthogonalize);
  const double share = product_efficiency(cluster.accelerator, work / products).value;
  parts.newton_schulz = work / (cluster.accelerator.flops_per_second * share);
  return parts;
}

// ── Promises ──

struct Promises {
  int gpus = 0;
  CommunicationComparison communication;
  std::optional<double> overhead;  // of Muon in a step, as a share; nothing: no layout
  bool extrapolated = false;       // of the step
  char strategy = ' ';
  double state = 0, held = 0;  // Muon's over AdamW's: the optimizer's state, and all that is held
};

TrainingLayout layout_of(const ModelShape& model, int gpus, int node) {
  TrainingLayout layout;
  layout.nodes = (gpus + node - 1) / node;
  layout.tp = kTp;
  layout.dp = gpus / kTp;
  layout.zero = 1;
  layout.accumulation = std::max(1, default_sequences(model, gpus) / layout.dp);
  return layout;
}

Promises promises_at(int gpus) {
  const ModelShape& model = model_shape(kModel);
  const Cluster cluster = cluster_of("h100-efa");
  const StepQuestion question{model, cluster, software_of("nanotron"), layout_of(model, gpus, cluster.node())};
  Promises promises;
  promises.gpus = gpus;
  promises.communication = compare_communication(model, gpus / kTp, kTp, cluster);
  const StepPrediction adamw = predict_adamw(question);
  for (const Strategy& strategy : strategies()) {
    if (!strategy.is_muon) continue;
    MuonSetup setup;
    setup.strategy = strategy;
    const StepPrediction muon = predict_muon(question, setup);
    const double overhead = muon.step_seconds() / adamw.step_seconds() - 1;
    if (promises.overhead && overhead >= *promises.overhead) continue;
    promises.overhead = overhead;
    promises.strategy = strategy.letter;
    promises.extrapolated = any_extrapolated(muon.seconds);
  }
  const double all = model.parameters(), muons = model.muon_parameters(), dp = question.layout.dp;
  // Bytes per parameter with ZeRO-1: 6 + 12 / dp with AdamW, 6 + 8 / dp with Muon (lesson 14).
  promises.state = (8 * all - 4 * muons) / (8 * all);
  promises.held = (6 + (12 - 4 * muons / all) / dp) / (6 + 12 / dp);
  return promises;
}

std::string marked(const std::string& figure, bool extrapolated) { return figure + (extrapolated ? " *" : "  "); }

// The first size at which a promise no longer holds.
template <class Broken>
std::string first_broken(const std::vector<Promises>& all, const char* what, const Broken& broken) {
  for (const Promises& each : all)
    if (broken(each)) return fmt::format("{} from {} GPUs on", what, number_text(each.gpus));
  return fmt::format("{} at none of these sizes", what);
}

}  // namespace

std::string machines_table() {
  Table table({{fmt::format("{}, epyc-vm", kModel)},
               {"dp × tp", Side::right},
               {"messages", seconds_text},
               {"bytes", seconds_text},
               {"Newton–Schulz", seconds_text},
               {"a step", seconds_text}});
  for (const int ranks : kSizes) {
    const PlanParts parts = parts_on_machines(ranks);
    table.row({fmt::format("{} ranks", number_text(ranks)), fmt::format("{} × {}", ranks / kTp, kTp), parts.messages,
               parts.bytes, parts.newton_schulz, parts.messages + parts.bytes + parts.newton_schulz});
  }
  return table.text();
}

std::string promises_table() {
  std::vector<Promises> all;
  for (const int gpus : kSizes) all.push_back(promises_at(gpus));
  Table table({{fmt::format("{}, h100-efa", kModel)},
               {"communication", Side::right},
               {"in bytes", Digits{2}},
               {"overhead", Side::right},
               {"with", Side::right},
               {"state", Digits{2}},
               {"all memory", Digits{2}}});
  for (const Promises& each : all)
    table.row({fmt::format("{} GPUs", number_text(each.gpus)),
               marked(fixed_text(each.communication.ratio(), 2), each.communication.extrapolated),
               each.communication.bytes_ratio(), marked(percent_text(*each.overhead), each.extrapolated),
               fmt::format("({})", each.strategy), each.state, each.held});
  table.row({"promised, on 4", "0.57  ", "", "1.1 %  ", "", "0.50", ""});
  const auto sentence =
      first_broken(all, "Muon's communication is above AdamW's", [](auto& p) { return p.communication.ratio() > 1; }) +
      "; " + first_broken(all, "its overhead is above 1.1 %", [](auto& p) { return *p.overhead > 0.011; }) + "; " +
      first_broken(all, "it holds above 95 % of AdamW's memory", [](auto& p) { return p.held > 0.95; }) + ".";
  std::string text = table.text() + "\n* outside of what was measured, groups of 8 to 512 GPUs";
  for (const std::string& line : paragraph(sentence, 0, 0)) text += "\n" + line;
  return text;
}

std::string validation_summary() {
  const PublishedRuns runs = carried_runs();
  const std::vector<RunOutcome> outcomes = outcomes_of(runs, software_of("nanotron"));
  std::vector<std::string> lines;
  const auto worst = [](const std::vector<PublishedStep>& steps) {
    const auto most = std::max_element(steps.begin(), steps.end(), [](const PublishedStep& a, const PublishedStep& b) {
      return std::abs(a.error()) < std::abs(b.error());
    });
    return fmt::format("at worst {:+.0f} %, {}", 100 * most->error(), most->what);
  };
  const Scores largest =
      scores_of(chosen(outcomes, [](const PublishedRun& run) { return run.layout.nodes == kMostNodes; }));
  append(lines, paragraph(fmt::format("where it fails: {} nodes, error {}, rank {:.2f}", kMostNodes,
                                      percent_text(largest.error), largest.rank),
                          0, 2));
  lines.push_back("Megatron-LM's steps on A100: " + worst(megatron_steps()));
  double off = 0, nothing = 0;
  const std::vector<PublishedPair> pairs = published_pairs();
  for (const PublishedPair& each : pairs) off += std::abs(each.error()), nothing += std::abs(each.published);
  const double points = 100.0 / static_cast<double>(pairs.size());
  lines.push_back(fmt::format("what Muon adds: {}; {} pairs off by {:.1f} points, \"nothing\" by {:.1f}",
                              worst(muon_steps()), pairs.size(), points * off, points * nothing));
  std::string text = target_table(outcomes);
  for (const std::string& line : lines) text += "\n" + line;
  return text;
}

}  // namespace muonwalk::sim
