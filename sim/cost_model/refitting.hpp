#pragma once

#include <vector>

#include "sim/cost_model/published_runs.hpp"
#include "sim/cost_model/training_software.hpp"

namespace muonwalk::sim {

/// The software with the six constants of its time fitted to these runs alone, from `start` on: each is made larger or
/// smaller as long as that helps, in steps from 8 % down to 1 %. What is to be small is the mean of
/// |log(predicted / measured)|, where a run that is further off than 0.5 counts 0.5: some records are wild. The two
/// constants of memory stay as they are. Returns `start` where there are no runs.
TrainingSoftware refitted(const std::vector<const PublishedRun*>& runs, const TrainingSoftware& start);

}  // namespace muonwalk::sim
