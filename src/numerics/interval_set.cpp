#include "src/numerics/interval_set.hpp"

#include <algorithm>
#include <utility>

namespace muonwalk::sim {

IntervalSet::IntervalSet(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (const Interval& next : intervals) {
    if (next.end <= next.begin) continue;
    if (!intervals_.empty() && next.begin <= intervals_.back().end)
      intervals_.back().end = std::max(intervals_.back().end, next.end);
    else
      intervals_.push_back(next);
  }
}

std::int64_t IntervalSet::length() const {
  std::int64_t sum = 0;
  for (const Interval& interval : intervals_) sum += interval.end - interval.begin;
  return sum;
}

IntervalSet united(const IntervalSet& a, const IntervalSet& b) {
  std::vector<Interval> all = a.intervals();
  all.insert(all.end(), b.intervals().begin(), b.intervals().end());
  return IntervalSet(std::move(all));
}

IntervalSet intersected(const IntervalSet& a, const IntervalSet& b) {
  std::vector<Interval> both;
  auto one = a.intervals().begin();
  auto two = b.intervals().begin();
  while (one != a.intervals().end() && two != b.intervals().end()) {
    both.push_back({std::max(one->begin, two->begin), std::min(one->end, two->end)});  // empty where they don't meet
    if (one->end < two->end)
      ++one;
    else
      ++two;
  }
  return IntervalSet(std::move(both));
}

}  // namespace muonwalk::sim
