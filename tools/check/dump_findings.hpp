#pragma once

#include <string>
#include <vector>

#include "tools/check/dump.hpp"

namespace muonwalk::check {

/// What the bits of a dump say by themselves, whatever the recipe. Each appends to `findings` what it finds.
/// @{

/// NaN and infinity in a tensor: the first of them.
void find_not_finite(const DumpedStep& step, const DumpedParameter& parameter, const char* tensor,
                     const Assembled& whole, std::vector<Finding>& findings);

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

/// The first tensor of a parameter in a step in which ranks that repeat it differ; gradient_not_reduced where that is
/// the gradient and what comes of it differs, too. Nothing where they agree, and where gradients alone differ.
std::optional<Finding> first_split(const DumpedStep& step, const DumpedParameter& parameter);

/// Equal length and equal bits.
bool same_bits(const Flat& left, const Flat& right);

/// Whether all of them are zero.
bool all_zero(const Flat& values);

/// ‖a − b‖ / ‖b‖ (Frobenius, in double precision); infinite where lengths differ.
double relative_distance(const Flat& a, const Flat& b);

/// "ranks 0, 2 against rank 1": who has which version.
std::string versions_text(const Assembled& whole);

using RankPairs = std::vector<std::pair<int, int>>;
/// The one axis along which these pairs of ranks lie apart; empty where there is none, or several.
std::string axis_between(const DumpedStep& step, const RankPairs& pairs);
/// The same of ranks with different versions.
std::string axis_of_versions(const DumpedStep& step, const Assembled& whole);

/// Rounds to a type, "BF16", "F16" or "F32": to nearest, ties to even.
using Rounding = float (*)(float);
Rounding rounding_to(const std::string& dtype);

/// "rank 3", "ranks 0, 2, 5", of many the first eight.
std::string ranks_list(std::vector<int> ranks);

/// A sentence on the first element in which the second version differs from the first.
std::string first_difference(const std::vector<std::int64_t>& shape, const Assembled& whole);

}  // namespace muonwalk::check
