#pragma once

#include <cstdint>
#include <vector>

#include "sim/recording/interval_set.hpp"

namespace muonwalk::sim {

/// How long intervals are, added up: more than passed where they overlap.
std::int64_t sum_of(const std::vector<Interval>& intervals);

/// How much of the time in which messages were under way was also spent with computing, from 0 to 1; 0 where none was
/// under way.
double hidden_share(const std::vector<Interval>& under_way, const std::vector<Interval>& computing);

}  // namespace muonwalk::sim
