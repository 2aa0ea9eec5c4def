#pragma once
#include "sim/cost_model/training_time.hpp"
namespace muonwalk::sim {
constexpr const char* kTwoMoments = "AdamW's two moments";
std::vector<Term> training_bytes(const ModelShape&, const TrainingLayout&, const TrainingSoftware&);
bool is_transient(const Term&);
bool fits(double peak_bytes, const Cluster&, const TrainingSoftware&);
}
