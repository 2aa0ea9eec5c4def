#pragma once

#include <functional>
#include <string>

#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// What makes the matrix `x` of the parameter `name` orthogonal, as newton_schulz does.
using Orthogonalize =
    std::function<Matrix(const Matrix& x, const NewtonSchulzSettings& settings, const std::string& name)>;

/// muon_step (serial_muon.hpp) for every recipe: one step for one matrix, in one process and in plain loops, with the
/// choices that the settings hold, and piece by piece where `name` is a fused matrix. With the defaults its bits are
/// those of muon_step, which is easier to read. Without `orthogonalize` it takes newton_schulz.
void recipe_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name,
                 const Orthogonalize& orthogonalize = nullptr);

}  // namespace muonwalk
