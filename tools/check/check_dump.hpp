#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/check/dump.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

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

/// "clean", "unknown", "differs", "unjudgeable".
const char* verdict_name(Verdict verdict);

/// What muonwalk-check prints: the verdict of the whole, each parameter's, and what was found, with what the catalogue
/// of bugs knows about it.
std::vector<std::string> verdict_text(const DumpVerdict& verdict);

/// The same as JSON, as docs/check-verdict.md describes it, with a newline at its end.
std::string verdict_json(const DumpVerdict& verdict);

/// A page that needs no other file and no network: what is printed, and a map of each parameter, with the part of each
/// rank of `step`, coloured by how far it is from the nearest recipe.
std::string verdict_page(const DumpVerdict& verdict, const DumpedStep& step);

}  // namespace muonwalk::check
