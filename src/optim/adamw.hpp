#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Where AdamW's ε stands. Both forms have the same limit for ε → 0; how far apart they are, lesson 11 prints.
enum class Epsilon {
  on_uncorrected_root,    ///< √v + ε, with the bias corrections in the step size: the paper's first remark on Adam's
                          ///< efficiency, and what the proof of concept does
  outside_corrected_root  ///< √(v / (1 − β₂ᵗ)) + ε: the paper's algorithm, and what torch.optim.AdamW does
};

/// The knobs of AdamW, for everything that is not a hidden matrix: embeddings, the output layer, vectors.
struct AdamWSettings {
  float lr = 1e-3f;           ///< learning rate
  float beta1 = 0.9f;         ///< decay of the first moment
  float beta2 = 0.999f;       ///< decay of the second moment
  float epsilon = 1e-8f;      ///< added to √v, so that nothing is divided by 0
  float weight_decay = 0.1f;  ///< decoupled: weights are multiplied by 1 − lr · weight_decay
  Epsilon epsilon_stands = Epsilon::on_uncorrected_root;  ///< Which of the two forms of the formula it is.
  bool summed_gradients = false;  ///< what a step is handed, as in MuonSettings; only ZeRO-1 AdamW takes shards
};

/// Refuses settings that no step makes sense with. Throws UsageError, one sentence that names the option
/// ("--adamw-lr"), its value and what works: a negative or infinite learning rate or decay, betas outside of [0, 1), or
/// an ε that is not above 0, with which padding would be 0 / 0.
void require_sensible(const AdamWSettings& settings);

/// One step of AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019), in place, on `count`
/// elements: w ← w (1 − lr · weight_decay); m ← β₁ m + (1 − β₁) g; v ← β₂ v + (1 − β₂) g²; w ← w − s · m / (√v + ε),
/// where the step size s = lr · √(1 − β₂ᵗ) / (1 − β₁ᵗ) carries the bias corrections. With ε outside of the corrected
/// root: s = lr / (1 − β₁ᵗ), and the last line is w ← w − s · m / (√v / √(1 − β₂ᵗ) + ε). `step` is t and starts at 1.
/// Throws std::invalid_argument for a step below 1.
void adamw(float* weights, const float* gradient, float* first_moment, float* second_moment, Index count, int step,
           const AdamWSettings& settings);

/// Floating point operations of that per element: 3 for m, 4 for v, 1 for the decay, 5 for the update.
constexpr double kAdamWFlops = 13;

/// What AdamW keeps of one flat array of parameters between steps.
struct AdamWState {
  Flat weights;        ///< updated in place
  Flat first_moment;   ///< A number for each weight, zeros before the first step.
  Flat second_moment;  ///< A number for each weight, zeros before the first step.
};

/// The state before the first step: these weights and moments of zero.
AdamWState initial_adamw_state(Flat weights);

/// One step of AdamW on a state. Throws std::invalid_argument for a step below 1 and where the sizes differ.
void adamw(AdamWState& state, const Flat& gradient, int step, const AdamWSettings& settings);

}  // namespace muonwalk
