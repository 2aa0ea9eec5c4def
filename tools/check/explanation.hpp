#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/check/fit.hpp"
#include "tools/check/moments.hpp"
#include "tools/check/orthogonalizers.hpp"

namespace muonwalk::check {

/// Something that may explain a parameter's step, and how far it is from it.
struct Explanation {
  std::string kind, axis, how;  ///< As of a Cutting or an Input; `kind` is empty where a known recipe does it so.
  std::string optimizer;        ///< As in a ParameterVerdict.
  const Recipe* recipe = nullptr;
  std::string coefficients = {};
  int steps = 5;
  std::optional<bool> nesterov = {};
  Decays decays = Decays::everywhere;
  bool lines_scaled = false;
  Fit fit = {};
  std::vector<std::pair<Index, Index>> shapes = {};  ///< Rows and columns of each group of the fit.
  NewtonSchulzSettings settings = {};
  Input input = {};
};

/// What the search has in hand of one parameter.
struct Subject {
  std::string role;  ///< The parameter's role and shape: what those that are alike have in common.
  const ParameterCase& parameter;
  const View& view;
  const Step& step;
  const Moments& moments;
  /// What distance rounding alone explains: that of bf16's Newton–Schulz, and of how the weights are stored.
  double limit() const { return 0.025 + 0.35 * step.noise(); }
};

/// What explained other parameters, so that it is tried first.
struct Habits {
  std::optional<Orthogonalizer> orthogonalizer;
  std::optional<bool> nesterov;
  int threads = 1;
  /// Of each role and shape that was searched: the candidates that came nearest. The next of its kind looks at them
  /// alone.
  std::map<std::string, std::set<std::string>> nearest;
};

/// The nearest of the known recipes, with what they may take as input, on the matrices that are meant.
Explanation nearest_recipe(const Subject& subject, const Habits& habits);

/// How far bf16's Newton–Schulz is from itself where its lines round elsewhere: of a matrix of low rank, much.
double rounding_of(const Subject& subject, const Explanation& by, const Habits& habits);

/// Other polynomials in place of those of `nearest`, where they are much nearer along the singular vectors: there the
/// roundings of bf16 are small.
std::optional<Explanation> other_polynomials(const Subject& subject, const Explanation& nearest, const Habits& habits);

/// Everything else: other blocks, other inputs, other polynomials. The nearest explanation first, each kind once.
std::vector<Explanation> other_explanations(const Subject& subject, Habits& habits);

/// What is not orthogonalized: AdamW, sign, momentum itself. The nearest first. Looked at in the ranges `live`; empty:
/// in all.
std::vector<Explanation> elementwise_explanations(const Subject& subject,
                                                  const std::vector<std::pair<Index, Index>>& live);

/// Rank by rank: which parts a known recipe explains, which have another part's update, a shifted one, or none. Nothing
/// where all parts deviate, or none.
std::optional<Explanation> local_explanation(const Subject& subject, const Habits& habits);

}  // namespace muonwalk::check
