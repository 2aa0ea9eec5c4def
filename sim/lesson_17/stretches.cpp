#include "sim/lesson_17/stretches.hpp"

#include <algorithm>

namespace muonwalk::sim {

std::vector<Stretch> united(std::vector<Stretch> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; });
  std::vector<Stretch> apart;
  for (const Stretch& next : stretches) {
    if (next.end_ns <= next.begin_ns) continue;
    if (!apart.empty() && next.begin_ns <= apart.back().end_ns)
      apart.back().end_ns = std::max(apart.back().end_ns, next.end_ns);
    else
      apart.push_back(next);
  }
  return apart;
}

std::int64_t sum_of(const std::vector<Stretch>& stretches) {
  std::int64_t sum = 0;
  for (const Stretch& each : stretches) sum += each.end_ns - each.begin_ns;
  return sum;
}

std::int64_t time_in_both(const std::vector<Stretch>& a, const std::vector<Stretch>& b) {
  std::int64_t both = 0;
  for (const Stretch& one : united(a))
    for (const Stretch& two : united(b))
      both += std::max<std::int64_t>(0, std::min(one.end_ns, two.end_ns) - std::max(one.begin_ns, two.begin_ns));
  return both;
}

double hidden_share(const std::vector<Stretch>& under_way, const std::vector<Stretch>& computing) {
  const std::int64_t all = sum_of(united(under_way));
  return all == 0 ? 0 : static_cast<double>(time_in_both(under_way, computing)) / static_cast<double>(all);
}

}  // namespace muonwalk::sim
