#pragma once
#include <string>
#include <vector>
#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/prediction.hpp"
#include "sim/cost_model/training_layout.hpp"
namespace muonwalk::sim {
struct TrainingSoftware { std::string name; };
const TrainingSoftware& software_of(const std::string& name);
std::vector<std::string> software_names();
std::vector<Term> training_seconds(const ModelShape&, const Cluster&, const TrainingLayout&, const TrainingSoftware&);
}
