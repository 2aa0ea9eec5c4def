#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muonwalk::check {

struct DumpedStep;  // dump.hpp

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

/// What is asked of a dump: which recipe it is, or which bug; or only whether the ranks that repeat a tensor agree bit
/// for bit, and if not, since which step and tensor.
enum class Question { recipe, replicas };

/// Looks at all parameters of all steps, one at a time; of several steps the worst counts. `threads` are those of
/// products; `progress` is told how many parameters are done, of how many. Throws UsageError where the dump is broken.
DumpVerdict check_steps(const std::vector<DumpedStep>& steps, Question question = Question::recipe, int threads = 1,
                        const std::function<void(std::size_t, std::size_t)>& progress = {});

/// What a checkpoint lost or changed: a step as it was saved, and as it was loaded again, by as many ranks or others.
/// Throws UsageError where the steps or their parameters are different ones.
DumpVerdict check_loaded(const DumpedStep& saved, const DumpedStep& loaded);

/// What a bug of this kind is, from the catalogue, as the beginning of a sentence. Empty for a kind that isn't in it.
std::string bug_text(const std::string& kind);

/// "clean", "unknown", "differs", "unjudgeable".
const char* verdict_name(Verdict verdict);

/// What muonwalk-check prints: the verdict of the whole, each parameter's, and what was found, with what the catalogue
/// of bugs knows about it.
std::vector<std::string> verdict_text(const DumpVerdict& verdict);

/// The same as JSON, as docs/check-verdict.md describes it, with a newline at its end.
std::string verdict_json(const DumpVerdict& verdict);

/// A page that needs no other file and no network: what is printed, and a map of each parameter, with the part of each
/// rank of `step`, in the colour of its verdict.
std::string verdict_page(const DumpVerdict& verdict, const DumpedStep& step);

}  // namespace muonwalk::check
