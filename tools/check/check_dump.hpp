#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/check/dump.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

/// What is said of how far it is: parameters done, of how many.
using Progress = std::function<void(std::size_t done, std::size_t of)>;

/// Judges all parameters of all steps, one at a time: what the recipe is, or the bug; and what the bits alone say. Of
/// several steps the worst counts. Throws UsageError where the dump is broken.
DumpVerdict check_steps(const std::vector<DumpedStep>& steps, int threads, const Progress& progress);

/// Says of each parameter whether the ranks that repeat its tensors agree bit for bit, and if not, since which step and
/// tensor. No recipe is looked for.
DumpVerdict check_replicas(const std::vector<DumpedStep>& steps);

/// What a checkpoint lost or changed: a step as it was saved, and as it was loaded again, by as many ranks or others.
/// Throws UsageError where the steps or their parameters are different ones.
DumpVerdict check_loaded(const DumpedStep& saved, const DumpedStep& loaded);

}  // namespace muonwalk::check
