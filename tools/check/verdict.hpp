#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace muonwalk::check
