#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>

#include "src/optim/recipes.hpp"
#include "tools/check/cuttings.hpp"

namespace muonwalk::check {

/// ‖values‖, Frobenius.
double norm_of(const Flat& values);

/// What a step was: after − before, and how much of it is rounding of what was stored.
struct Step {
  Flat moved;  ///< D = after − before.
  const Flat* before = nullptr;
  double squares = 0, along_weights = 0, of_weights = 0;  ///< ‖D‖², D · W, ‖W‖².
  double rounding = 0;                                    ///< The expected squares of the rounding of `after`.
  /// The rounding's share of the step, 0 to more than 1.
  double noise() const;
  /// A distance that is this small, or this large beside the rounding of how weights are stored.
  double within(double distance) const { return distance + 0.35 * noise(); }
};
/// `before` must outlive it. `dtype` is what `after` was rounded to; empty: to nothing.
Step step_between(const Flat& before, const Flat& after, const std::string& dtype);

/// Where weights decay.
enum class Decays { everywhere, where_signs_agree };

/// D = −α W − Σ β_b O_b, by least squares over one α and a β for each group of elements.
struct Fit {
  double distance = 2;  ///< ‖D + αW + Σ β_b O_b‖ / ‖D + αW‖, both without the expected rounding.
  double left = 0;      ///< ‖D + αW + Σ β_b O_b‖.
  double alpha = 0, alpha_error = 0;
  struct Group {
    double rows = 0, cols = 0;
    double beta = 0, norm = 0;  ///< β_b, ‖O_b‖.
  };
  std::vector<Group> groups;
  double mean_beta() const;  ///< Of the norm of all.
};
/// Each block is a group, in the places of its update. `update` is laid out like the step.
Fit fit_of(const Step& step, const Flat& update, const std::vector<Block>& groups, Decays decays = Decays::everywhere);
/// All elements are one group.
Fit fit_of(const Step& step, const Flat& update, Decays decays = Decays::everywhere);

/// One version of each tensor of a parameter: what one rank, or all, had. Absent ones are null.
struct View {
  const Flat *before = nullptr, *after = nullptr, *grad = nullptr, *momentum_before = nullptr,
             *momentum_after = nullptr, *second_before = nullptr, *second_after = nullptr;
};

/// What may have been orthogonalized; its kind is empty where a known recipe takes it.
struct Input : Claim {
  std::optional<bool> nesterov = {};
  /// A combination of the momentum before the step, the gradient, the momentum after it and the weights.
  std::array<double, 4> of = {};
  bool in_half = false;           ///< Rounded to half precision first.
  bool rounds_otherwise = false;  ///< The direction of one before it, of another size: bf16 rounds it otherwise.

  Flat made(const View& view) const;
};

/// What the moments of a parameter say, and which inputs they leave.
struct Moments {
  bool known = true;   ///< False: a later step without momentum, so that nothing but the gradient can be tried.
  bool lawful = true;  ///< False: what the momentum is after the step doesn't come from this gradient.
  std::vector<Claim> deviations;  ///< Of the law m' = μ m + c g, or of what was there before.
  std::vector<Input> inputs;      ///< Those of known recipes first; no two of one direction.
};
/// `adamw`: the first moment of AdamW, whose law is that of a mean with β₁; it has no inputs.
Moments moments_of(const ParameterCase& parameter, const View& view, bool adamw);

/// A way to orthogonalize that a published class has, with its own roundings.
struct Orthogonalizer {
  const Recipe* recipe = nullptr;  ///< The first class that has it.
  NewtonSchulzSettings settings = {};
  SecondMoment lines = {};  ///< Rows (or the longer side's lines) that it divides by a second moment afterwards.

  /// The same text for the same polynomials and lines, and with `roundings`, for the same in bf16.
  std::string key(bool roundings) const;
};

/// Something that may explain a parameter's step, and how far it is from it.
struct Explanation : Claim {
  std::string optimizer;  ///< As in a ParameterVerdict.
  Orthogonalizer by = {};
  Input input = {};
  Decays decays = Decays::everywhere;
  Fit fit = {};
};
/// By distance, the nearest first.
void sort(std::vector<Explanation>& explanations);

/// What explained other parameters, so that it is tried first.
struct Habits {
  std::optional<Orthogonalizer> orthogonalizer;
  std::optional<bool> nesterov;
  int threads = 1;
  /// Of each role and shape that was searched: the candidates that came nearest; none where none came near. The next of
  /// its kind looks at them alone.
  std::map<std::string, std::set<std::string>> nearest;
  std::map<std::string, double> reached;  ///< How near the nearest recipe came to the last of them that was searched.
};

/// What the search has in hand of one parameter.
struct Subject {
  std::string role;  ///< The parameter's role and shape: what those that are alike have in common.
  const ParameterCase& parameter;
  const View& view;
  const Step& step;
  const Moments& moments;
  Habits& habits;
  const Cutting meant = meant_cutting(parameter);

  /// What bf16's Newton–Schulz may differ by.
  double limit() const { return step.within(0.025); }
  /// The ways of all recipes, in float32 and then in bf16, each once; with the steps that hyper asks for, too, and with
  /// `more_steps`, 3 to 12 of them.
  std::vector<Orthogonalizer> ways(bool more_steps = false) const;
  /// What becomes of an input that is laid out like the parameter.
  Flat orthogonalized(const Input& input, const Cutting& cutting, const Orthogonalizer& by) const;
};

/// The nearest of the known recipes, with what they may take as input, on the matrices that are meant.
Explanation nearest_recipe(const Subject& subject);

/// Everything else: other blocks, other inputs, other steps. The nearest explanation first.
std::vector<Explanation> other_explanations(const Subject& subject);

/// What is not orthogonalized: AdamW, sign, momentum itself. The nearest first.
std::vector<Explanation> elementwise_explanations(const Subject& subject);

/// Part by part, as ranks hold them: which a known optimizer explains, which have another one's update, or none.
/// Nothing where all parts deviate, or none.
std::optional<Explanation> local_explanation(const Subject& subject);

}  // namespace muonwalk::check
