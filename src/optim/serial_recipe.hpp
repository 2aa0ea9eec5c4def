#pragma once

#include <string>

#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// muon_step (serial_muon.hpp) for every recipe: one step for one matrix, in one process and in plain loops, with the
/// choices that the settings hold, and piece by piece where `name` is a fused matrix. With the defaults its bits are
/// those of muon_step, which is easier to read.
void recipe_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name);

}  // namespace muonwalk
