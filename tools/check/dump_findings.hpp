#pragma once

#include <string>
#include <vector>

#include "tools/check/dump.hpp"

namespace muonwalk::check {

/// What the bits of a dump say by themselves, whatever the recipe. Each appends to `findings` what it finds.
/// @{

/// Ranks that repeat a tensor and differ, though their gradients agree; and weights that aren't the rounding of their
/// masters, where the dump has masters: `weights` and `masters` are how both are cut.
void find_raw(const DumpedStep& step, const DumpedParameter& parameter, const Holdings& weights,
              const Holdings& masters, ReadParameter& read);

/// Moments after a step that aren't those before the next one, `later`.
void find_lost_between(const DumpedStep& earlier, const ParameterCase& later, std::vector<Finding>& findings);

/// A step as it was saved, and as it was loaded again: weights that changed, moments that are lost or another rank's.
void find_changed_by_load(const DumpedStep& saved, const DumpedParameter& parameter, const DumpedStep& loaded,
                          const DumpedParameter& same, std::vector<Finding>& findings);

/// @}

/// The first NaN or infinity in a tensor of a parameter.
std::optional<Finding> not_finite(const DumpedStep& step, const DumpedParameter& parameter, const std::string& tensor,
                                  const Assembled& whole);

/// The first tensor of a parameter in a step in which ranks that repeat it differ; gradient_not_reduced where that is
/// the gradient and what comes of it differs, too. Nothing where they agree, and where gradients alone differ.
std::optional<Finding> first_split(const DumpedStep& step, const DumpedParameter& parameter);

/// Whether all of them are zero.
bool all_zero(const Flat& values);

using RankPairs = std::vector<std::pair<int, int>>;
/// The one axis along which these pairs of ranks lie apart; empty where there is none, or several.
std::string axis_between(const DumpedStep& step, const RankPairs& pairs);

/// Rounds to a type, "BF16", "F16" or "F32": to nearest, ties to even.
using Rounding = float (*)(float);
Rounding rounding_to(const std::string& dtype);

/// "rank 3", "ranks 0, 2, 5", of many the first eight.
std::string ranks_list(std::vector<int> ranks);

}  // namespace muonwalk::check
