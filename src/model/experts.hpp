#pragma once

#include <vector>

#include "src/model/mlp.hpp"

namespace muonwalk {

/// What a backward pass needs again of a mixture of experts. An expert has `capacity` slots for the rows of a
/// micro-batch, which are filled in the order of the rows; those that are left over are zeros.
struct ExpertsSaved {
  Matrix shares;               ///< rows × experts: an expert's share in a row's output, 0 where not chosen
  std::vector<Index> slots;    ///< [expert][slot]: the row in it; −1: none
  std::vector<Matrix> inputs;  ///< [source][own expert]: the slots that the ranks of the EP group filled
  std::vector<MlpSaved> mlps;  ///< [source][own expert]
  Matrix outputs;              ///< [expert][slot]: what came back
};

/// A mixture of experts in place of the one feed-forward network (Jiang et al., "Mixtral of Experts", 2024, section 2):
/// each row goes to the config.chosen experts with the largest scores x · routerᵀ, of equal ones the first, and gets
/// their outputs in shares that are the softmax of these scores. An expert that is full passes a row by, which then
/// gets nothing for that share. What is computed for the rows of one rank does not depend on where the experts are.
///
/// Sharers have their hidden channels of the experts, and the whole router. x is rows × width, the same on all sharers,
/// as is what it returns.
Matrix mixture_of_experts(const GptConfig& config, const LayerTensors& tensors, const Sharers& sharers, const Matrix& x,
                          ExpertsSaved& saved);

/// Backward: from the gradient in what mixture_of_experts returned to that in x. The gradients of the router and of the
/// experts grow, those of the experts each by what the rows of one source bring (zeros_like with as many sources as
/// sharers.experts_over). Which expert a row chose does not change with small changes of x, so nothing flows through
/// the choice itself.
Matrix mixture_of_experts_backward(const GptConfig& config, const LayerTensors& tensors, const Sharers& sharers,
                                   const Matrix& x, const ExpertsSaved& saved, const Matrix& d_out,
                                   LayerTensors& gradients);

}  // namespace muonwalk
