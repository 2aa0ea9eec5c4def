#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muonwalk::sim {

/// Whole numbers, each with a name that a sentence can use: "rank 0, all_gather in [0, 1]: calls".
using NamedNumbers = std::map<std::string, std::int64_t>;

/// The first name at which the two differ, as a sentence with both numbers; empty when they are equal.
std::string first_difference(const NamedNumbers& read, const NamedNumbers& expected);

}  // namespace muonwalk::sim
