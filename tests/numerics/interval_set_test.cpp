#include "src/numerics/interval_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace muonwalk::sim;

TEST_CASE("interval_set: union and intersection equal counting moment by moment, for random intervals") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int kMoments = 60;
    std::vector<bool> in_a(kMoments), in_b(kMoments);
    const auto some = [&](std::vector<bool>& moments) {
      std::vector<Interval> intervals;
      for (unsigned i = random() % 12; i > 0; --i) {
        const std::int64_t begin = random() % kMoments, end = std::min<std::int64_t>(kMoments, begin + random() % 9);
        intervals.push_back({begin, end});
        for (std::int64_t at = begin; at < end; ++at) moments[static_cast<std::size_t>(at)] = true;
      }
      return IntervalSet(intervals);
    };
    const IntervalSet a = some(in_a), b = some(in_b);
    std::int64_t both = 0, any = 0;
    for (std::size_t at = 0; at < kMoments; ++at) {
      both += in_a[at] && in_b[at];
      any += in_a[at] || in_b[at];
    }
    CHECK(intersected(a, b).length() == both);
    CHECK(united(a, b).length() == any);
    CHECK(a.length() == std::count(in_a.begin(), in_a.end(), true));
    // What touches is one, what has no length is none.
    std::int64_t end = -1;
    for (const Interval& each : a.intervals()) {
      CHECK(each.begin > std::exchange(end, each.end));
      CHECK(each.begin < each.end);
    }
  }
}
