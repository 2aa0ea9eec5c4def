#include "sim/cost_model/refitting.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/training_time.hpp"

namespace muonwalk::sim {
namespace {

constexpr double TrainingSoftware::*kTimeConstants[] = {
    &TrainingSoftware::product_efficiency, &TrainingSoftware::host_seconds_per_layer,
    &TrainingSoftware::node_hop_seconds,   &TrainingSoftware::pipeline_rank_seconds,
    &TrainingSoftware::node_link_share,    &TrainingSoftware::group_seconds_per_doubling};
constexpr double kSteps[] = {1.08, 1.04, 1.02, 1.01};
constexpr double kWild = 0.5;  // an error that counts no more than this
constexpr int kMostRounds = 12;

double misfit(const std::vector<const PublishedRun*>& runs, const TrainingSoftware& software) {
  static const Cluster cluster = cluster_of("h100-efa");
  double sum = 0;
  for (const PublishedRun* run : runs) {
    const TrainingLayout& layout = run->layout;
    const ModelShape& model = model_shape(run->model);
    const double tokens = static_cast<double>(model.tokens) * layout.dp * layout.micro_batch * layout.accumulation;
    const double predicted = tokens / step_seconds(model, cluster, layout, software) / layout.ranks();
    sum += std::min(kWild, std::abs(std::log(predicted / run->tokens_per_second)));
  }
  return sum;
}

}  // namespace

TrainingSoftware refitted(const std::vector<const PublishedRun*>& runs, const TrainingSoftware& start) {
  TrainingSoftware best = start;
  if (runs.empty()) return best;
  double least = misfit(runs, best);
  for (const double step : kSteps) {
    bool better = true;
    for (int round = 0; better && round < kMostRounds; ++round) {
      better = false;
      for (const auto constant : kTimeConstants)
        for (const double factor : {step, 1 / step}) {
          TrainingSoftware tried = best;
          tried.*constant *= factor;
          if (const double found = misfit(runs, tried); found < least) {
            least = found;
            best = tried;
            better = true;
          }
        }
    }
  }
  return best;
}

}  // namespace muonwalk::sim
