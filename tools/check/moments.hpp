#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/check/parameter_case.hpp"

namespace muonwalk::check {

/// One version of each tensor of a parameter: what one rank, or all, had. Absent ones are null.
struct View {
  const Flat *before = nullptr, *after = nullptr, *grad = nullptr, *momentum_before = nullptr,
             *momentum_after = nullptr, *second_before = nullptr, *second_after = nullptr;
};

/// Something about a parameter that deviates, besides its direction.
struct Deviation {
  std::string kind;  ///< An id of the catalogue; empty where none fits.
  std::string axis;
  std::string how;  ///< What was seen: "μ is 0.900, and hyper says 0.95"
};

/// m' = μ m + c g + λ W, fitted.
struct MomentumLaw {
  bool fitted = false;  ///< The dump has the momentum after the step, and the one before or a first step.
  bool holds = false;   ///< What is left is no more than rounding.
  double mu = 0, of_gradient = 0, of_weights = 0, left = 0;
  bool is_mean = false;  ///< c is 1 − μ, not 1.
};

/// What may have been orthogonalized: a combination of the momentum before the step, the gradient, the momentum after
/// it and the weights.
struct Input {
  std::string kind;  ///< Empty: as a known recipe takes it.
  std::string how;   ///< "the momentum from before this gradient"
  std::optional<bool> nesterov;
  double of_momentum_before = 0, of_gradient = 0, of_momentum_after = 0, of_weights = 0;
  bool in_half = false;           ///< Rounded to half precision first.
  bool rounds_otherwise = false;  ///< The direction of one before it, of another size: in bf16 it rounds otherwise.

  Flat made(const View& view) const;
};

/// What the moments of a parameter say, and which inputs they leave.
struct Moments {
  MomentumLaw law;
  double mu = 0.95;   ///< Of hyper, else fitted, else a guess.
  bool known = true;  ///< False: a later step without momentum, so that nothing but the gradient can be tried.
  std::vector<Deviation> deviations;
  std::vector<Input> inputs;  ///< Those of known recipes first; no two of one direction.
};

/// `adamw`: the first moment of AdamW, whose law is that of a mean with β₁.
Moments moments_of(const ParameterCase& parameter, const View& view, bool adamw);

}  // namespace muonwalk::check
