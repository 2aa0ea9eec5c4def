#pragma once

#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// Takes about as long as a forward and a backward pass of these layers over `tokens` tokens would, with `threads`
/// threads: for each layer the product of its weights with inputs, and the two products of its gradients.
void stand_in_for_model(const std::vector<NamedMatrix>& layers, Index tokens, int threads);

}  // namespace muonwalk::sim
