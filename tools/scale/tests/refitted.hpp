#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/scale/published_runs.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// The constants of time that are fitted to runs.
constexpr double TrainingSoftware::*kRefitted[] = {
    &TrainingSoftware::product_efficiency, &TrainingSoftware::host_seconds_per_layer,
    &TrainingSoftware::node_hop_seconds,   &TrainingSoftware::pipeline_rank_seconds,
    &TrainingSoftware::node_link_share,    &TrainingSoftware::group_seconds_per_doubling};

/// The sum over runs of |log(predicted / measured)|. A run that is further off than 0.5 counts 0.5: some records are
/// wild.
inline double misfit(const std::vector<const PublishedRun*>& runs, const TrainingSoftware& software) {
  constexpr double kWild = 0.5;
  double sum = 0;
  for (const PublishedRun* run : runs)
    sum += std::min(kWild, std::abs(std::log(predicted_speed(*run, software) / run->tokens_per_second)));
  return sum;
}

/// The software with the six constants of its time fitted to these runs alone, from `start` on: each is made larger or
/// smaller as long as that makes the misfit smaller, in steps from 8 % down to 1 %. The two constants of memory stay as
/// they are. Returns `start` where there are no runs. What software.json keeps was found by this.
inline TrainingSoftware refitted(const std::vector<const PublishedRun*>& runs, const TrainingSoftware& start) {
  constexpr int kMostRounds = 12;
  TrainingSoftware best = start;
  double least = misfit(runs, best);
  for (const double step : {1.08, 1.04, 1.02, 1.01}) {
    bool better = true;
    for (int round = 0; better && round < kMostRounds; ++round) {
      better = false;
      for (const auto constant : kRefitted)
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
