#include "tools/scale/step_comparison.hpp"

#include <algorithm>

#include "tools/scale/layout_search.hpp"
#include "tools/scale/step_prediction.hpp"

namespace muonwalk::sim {
namespace {

MuonCost cost_with(const Strategy& strategy, const StepQuestion& question) {
  const TrainingLayout& layout = question.layout;
  return muon_cost(question.model, layout.dp, layout.tp, layout.pp, layout.ep, {strategy}, question.cluster);
}

}  // namespace

std::vector<TrainingLayout> step_layouts(const ModelShape& model, const Cluster& cluster,
                                         const TrainingSoftware& software, int dp, int tp) {
  const int gpus = dp * tp;
  TrainingLayout layout;
  layout.nodes = (gpus + cluster.node() - 1) / cluster.node();
  layout.dp = dp;
  layout.tp = tp;
  layout.zero = 1;
  layout.ep = expert_ranks(model, cluster, dp, tp);
  return with_every_batch(layout, default_sequences(model, gpus), software);
}

std::optional<StepComparison> compare_steps(const ModelShape& model, const Cluster& cluster,
                                            const TrainingSoftware& software,
                                            const std::vector<TrainingLayout>& layouts) {
  std::optional<StepComparison> comparison;
  std::optional<MuonCost> by_work;  // which does not depend on micro-batches
  for (const TrainingLayout& layout : layouts) {
    const StepQuestion question{model, cluster, software, layout};
    // What does not fit without Muon's gathered matrices does not fit with them, and this is quicker to find out.
    if (!predict_muon(question, MuonCost()).fits) continue;
    if (!by_work) by_work = cost_with(owner_by_work(), question);
    const StepPrediction prediction = predict_muon(question, *by_work);
    if (!prediction.fits || (comparison && comparison->muon_seconds <= prediction.step_seconds())) continue;
    comparison.emplace();
    comparison->layout = layout;
    comparison->muon_seconds = prediction.step_seconds();
  }
  if (!comparison) return comparison;

  const StepQuestion question{model, cluster, software, comparison->layout};
  comparison->adamw_seconds = predict_adamw(question).step_seconds();
  for (const Strategy& strategy : strategies()) {
    if (!strategy.is_muon) continue;
    const StepPrediction muon = predict_muon(question, cost_with(strategy, question));
    if (!muon.fits) continue;
    // A step with Muon has all terms of the one with AdamW.
    comparison->extrapolated = comparison->extrapolated || any_extrapolated(muon.seconds);
    comparison->strategies.emplace_back(strategy.letter, muon.step_seconds());
  }
  std::stable_sort(comparison->strategies.begin(), comparison->strategies.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  comparison->best = comparison->strategies.front().first;
  comparison->muon_seconds = comparison->strategies.front().second;
  return comparison;
}

}  // namespace muonwalk::sim
