#pragma once

#include <vector>

#include "src/model/mlp.hpp"

namespace muonwalk {

/// What a backward pass needs again of a mixture of experts.
struct ExpertsSaved {
  std::vector<std::vector<Index>> rows;  ///< [expert]: the rows of x that chose it, in order
  Matrix shares;                         ///< rows × experts: an expert's share in a row's output, 0 where not chosen
  std::vector<Matrix> inputs;            ///< [expert]: its rows of x
  std::vector<MlpSaved> mlps;            ///< [expert]
};

/// A mixture of experts in place of the one feed-forward network (Jiang et al., "Mixtral of Experts", 2024, section 2):
/// each row goes to the `chosen` experts with the largest scores x · routerᵀ, of equal ones the first, and gets their
/// outputs in shares that are the softmax of these scores. Every sharer has its hidden channels of all experts, and the
/// whole router. x is rows × width, the same on all sharers, as is what it returns.
Matrix mixture_of_experts(Index pieces, Index chosen, const LayerTensors& tensors, const Sharers& sharers,
                          const Matrix& x, ExpertsSaved& saved);

/// Backward: from the gradient in what mixture_of_experts returned to that in x. The gradients of the router and of all
/// experts grow. Which expert a row chose does not change with small changes of x, so nothing flows through the choice
/// itself.
Matrix mixture_of_experts_backward(Index pieces, const LayerTensors& tensors, const Sharers& sharers, const Matrix& x,
                                   const ExpertsSaved& saved, const Matrix& d_out, LayerTensors& gradients);

}  // namespace muonwalk
