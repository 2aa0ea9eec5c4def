#pragma once

#include "src/model/part_tensors.hpp"
#include "src/model/sharers.hpp"

namespace muonwalk {

/// What a backward pass needs again of one feed-forward network, for the rows that it saw.
struct MlpSaved {
  Matrix gate;    ///< rows × hidden here: x · gateᵀ
  Matrix up;      ///< rows × hidden here: x · upᵀ
  Matrix hidden;  ///< silu(gate) ∘ up
};

/// The first two products of SwiGLU (Shazeer, "GLU Variants Improve Transformer", 2020): silu(x · gateᵀ) ∘ (x · upᵀ),
/// with silu(a) = a / (1 + e^−a). x is rows × width.
void swiglu(const MlpTensors& tensors, const Sharers& sharers, const Matrix& x, MlpSaved& saved);

/// Backward, in place: `d_hidden`, the gradient in saved.hidden, becomes that in saved.gate; returns that in saved.up.
Matrix swiglu_backward(const MlpSaved& saved, Matrix& d_hidden);

/// The second half of a layer: (silu(x · gateᵀ) ∘ (x · upᵀ)) · downᵀ. x is rows × width, the same on all sharers, as is
/// what it returns. The sum over hidden channels has `pieces` leaves on this sharer.
Matrix mlp(Index pieces, const MlpTensors& tensors, const Sharers& sharers, const Matrix& x, MlpSaved& saved);

/// Backward: from the gradient in what mlp returned to that in x. The gradients of gate, up and down grow.
Matrix mlp_backward(Index pieces, const MlpTensors& tensors, const Sharers& sharers, const Matrix& x,
                    const MlpSaved& saved, const Matrix& d_out, MlpTensors& gradients);

}  // namespace muonwalk
