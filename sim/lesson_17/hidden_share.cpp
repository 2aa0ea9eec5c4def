#include "sim/lesson_17/hidden_share.hpp"

namespace muonwalk::sim {

std::int64_t sum_of(const std::vector<Interval>& intervals) {
  std::int64_t sum = 0;
  for (const Interval& each : intervals) sum += each.end - each.begin;
  return sum;
}

double hidden_share(const std::vector<Interval>& under_way, const std::vector<Interval>& computing) {
  const IntervalSet all(under_way);
  if (all.empty()) return 0;
  return static_cast<double>(intersected(all, IntervalSet(computing)).length()) / static_cast<double>(all.length());
}

}  // namespace muonwalk::sim
