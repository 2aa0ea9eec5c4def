// What the parent and the ranks read of a request to stop, whichever of them comes first.

#include <doctest/doctest.h>

#include <random>

#include "sim/ranks/interrupt.hpp"

using muonwalk::sim::StopRequest;

TEST_CASE("StopRequest: the first step in which rank 0 sees the request is the last one, and that never changes") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    StopRequest store;
    const int asked_before = 1 + static_cast<int>(random() % 30);
    int step = 0, last = 0;
    for (int decision = 0; decision < 40; ++decision) {
      const int skipped = static_cast<int>(random() % 3);
      for (int other = 1; other <= skipped; ++other) CHECK(store.stops_after(step + other) == (last != 0));
      step += skipped + 1;
      CHECK_FALSE(store.has_decided(step));
      if (step >= asked_before) store.asked() = 1;
      store.decide(step);
      if (last == 0 && step >= asked_before) last = step;
      CHECK(store.has_decided(step));
      for (int at = 1; at <= step; ++at) {  // a rank that is behind reads what it would have read then
        CHECK(store.has_decided(at));
        CHECK(store.stops_after(at) == (last != 0 && at >= last));
      }
    }
    CHECK(last != 0);
  }
}

TEST_CASE("StopRequest: a request that comes when rank 0 has decided is for the next step, also where it looks twice") {
  StopRequest store;
  store.decide(4);
  store.asked() = 1;
  store.decide(4);
  CHECK_FALSE(store.stops_after(4));
  store.decide(5);
  CHECK_FALSE(store.stops_after(4));
  CHECK(store.stops_after(5));
}
