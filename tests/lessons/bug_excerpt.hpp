#pragma once

#include <string>

namespace muonwalk::testing {

/// What a planted bug changes on the screen: the lines of `with_bug` that `without_bug` does not have, each below the
/// line that it belongs to (a step, a check, the costs), and the last line. "…" stands where lines were left out.
std::string bug_excerpt(const std::string& without_bug, const std::string& with_bug);

/// True when both texts are the same but for what may differ between two processors, because values that were rounded
/// may: the values where a check found its first difference and the number of elements that differ may be off by a
/// hundredth, their distance in ULP by a factor of two. Everything else is compared character by character.
bool same_on_any_processor(const std::string& a, const std::string& b);

}  // namespace muonwalk::testing
