#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/check/explanation.hpp"

namespace muonwalk::check {

enum class Verdict { clean, unknown, differs, unjudgeable };

/// A bug, and all parameters that it explains.
struct Finding {
  std::string kind;  ///< An id of the catalogue; empty where something deviates and nothing in it explains that.
  std::string axis;  ///< A mesh axis, "heads", "blocks", "experts"; or empty.
  std::vector<std::string> parameters;
  std::string sentence;
};

/// What was found of one parameter.
struct ParameterVerdict {
  std::string name;
  Verdict verdict = Verdict::unknown;
  std::string reason;     ///< One sentence; empty where it is clean.
  std::string optimizer;  ///< What stepped it: "muon", "adamw", "sgd", "sign", "none"; or empty.
  std::string recipe;     ///< Of the nearest recipe; or empty.
  std::optional<double> distance, alpha, beta;
  std::string alpha_law, beta_law;
};

/// Parameters that one known way explains.
struct RecipeFound {
  std::string recipe, coefficients;
  std::optional<int> steps;
  std::optional<bool> nesterov;
  std::vector<std::string> parameters;
};

/// The verdict of a dump.
struct DumpVerdict {
  Verdict verdict = Verdict::unknown;
  std::string reason;
  std::vector<RecipeFound> recipes;
  std::vector<Finding> findings;
  std::vector<ParameterVerdict> parameters;
};

/// What is kept of one parameter of one step.
struct Evidence : Described {
  std::string role;  ///< Its name without numbers.
  ParameterVerdict told;
  std::optional<Explanation> by;  ///< What explains it, or comes nearest.
  bool sure = false;              ///< Whether it does explain it.
  bool likely = false;            ///< Or would, if others have the same.
  double noise = 0;               ///< The share of rounding in the step, where it may not be random.
  bool decay_visible = false;     ///< Whether α isn't lost in rounding.
  double rate = 1;                ///< The learning rate that is seen, in those of hyper.
  bool lawful = true;             ///< As in its Moments.
  std::vector<Claim> deviations;
};

/// Looks at one parameter of one step.
Evidence evidence_of(const ParameterCase& parameter, Habits& habits);

/// What all of them are together.
DumpVerdict verdict_of(std::vector<Evidence> all);

/// What a bug of this kind is, from the catalogue, as the beginning of a sentence. Empty for a kind that isn't in it.
std::string bug_text(const std::string& kind);

/// Judges a dump, parameter by parameter. What it keeps of one is small (fits and distances), whatever its size, so a
/// caller needs to hold one ParameterCase at a time.
class Judge {
 public:
  /// `threads` are those of the products of matrices; they change no verdict.
  explicit Judge(int threads = 1) { habits_.threads = threads; }

  /// Looks at one parameter of one step: what stepped it, in which direction, how far. Parameters come in any order,
  /// but the smallest first is fastest: what explains a matrix is tried first on later ones. Steps come in their order.
  void add(const ParameterCase& parameter) { all_.push_back(evidence_of(parameter, habits_)); }

  /// What all of them are together: the laws of α and β over their shapes, and what deviates. The parameters of a
  /// verdict have the order in which they were first added; of several steps, each has its worst.
  DumpVerdict verdict() const { return verdict_of(all_); }

 private:
  Habits habits_;
  std::vector<Evidence> all_;
};

}  // namespace muonwalk::check
