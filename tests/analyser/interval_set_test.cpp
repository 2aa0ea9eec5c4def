#include "sim/analyser/interval_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace muonwalk::sim;

TEST_CASE("interval_set: the union counts every moment once") {
  CHECK(IntervalSet().length() == 0);
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {5, 15}, {20, 30}}).intervals() ==
        std::vector<Interval>{{0, 15}, {20, 30}});
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {2, 3}}).length() == 10);
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {10, 20}}).intervals() == std::vector<Interval>{{0, 20}});
}

TEST_CASE("interval_set: what has no length, or less, adds nothing and splits nothing") {
  CHECK(IntervalSet(std::vector<Interval>{{5, 5}}).empty());
  CHECK(IntervalSet(std::vector<Interval>{{7, 3}}).empty());
  CHECK(IntervalSet(std::vector<Interval>{{0, 10}, {4, 4}}).intervals() == std::vector<Interval>{{0, 10}});
}

TEST_CASE("interval_set: the intersection holds the moments that are in both") {
  const IntervalSet a({{0, 10}, {20, 30}, {40, 50}}), b({{5, 25}, {30, 41}});
  CHECK(intersected(a, b).intervals() == std::vector<Interval>{{5, 10}, {20, 25}, {40, 41}});
  CHECK(intersected(a, IntervalSet()).empty());
}

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
  }
}
