#pragma once

#include <cstdint>
#include <vector>

namespace muonwalk::sim {

/// A stretch of time [begin, end), in nanoseconds.
struct Stretch {
  std::int64_t begin_ns = 0;  ///< the first moment
  std::int64_t end_ns = 0;    ///< one past the last
};

/// The moments that are in any of these, as stretches in order that do not touch.
std::vector<Stretch> united(std::vector<Stretch> stretches);

/// How long they are, added up: more than passed where they overlap.
std::int64_t sum_of(const std::vector<Stretch>& stretches);

/// How long both are at it, moments counted once.
std::int64_t time_in_both(const std::vector<Stretch>& a, const std::vector<Stretch>& b);

/// How much of the time in which messages were under way was also spent with computing, from 0 to 1; 0 where none was
/// under way.
double hidden_share(const std::vector<Stretch>& under_way, const std::vector<Stretch>& computing);

}  // namespace muonwalk::sim
