// What the process that prints and the ranks read of a request to stop, whichever of them comes first.

#include "sim/world/stop_board.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

using muonwalk::sim::StopBoard;

TEST_CASE("StopBoard: the first step in which rank 0 sees the request is the last one, and that never changes") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    StopBoard board;
    const int asked_before = 1 + static_cast<int>(random() % 30);
    int step = 0, last = 0;
    for (int decision = 0; decision < 40; ++decision) {
      const int skipped = static_cast<int>(random() % 3);
      for (int other = 1; other <= skipped; ++other) CHECK(board.stops_after(step + other) == (last != 0));
      step += skipped + 1;
      CHECK_FALSE(board.has_decided(step));
      if (step >= asked_before) board.asked() = 1;
      board.decide(step);
      if (last == 0 && step >= asked_before) last = step;
      CHECK(board.has_decided(step));
      for (int at = 1; at <= step; ++at) {  // a rank that is behind reads what it would have read then
        CHECK(board.has_decided(at));
        CHECK(board.stops_after(at) == (last != 0 && at >= last));
      }
    }
    CHECK(last != 0);
  }
}

TEST_CASE("StopBoard: a request that comes when rank 0 has decided is for the next step, also where it looks twice") {
  StopBoard board;
  board.decide(4);
  board.asked() = 1;
  board.decide(4);
  CHECK_FALSE(board.stops_after(4));
  board.decide(5);
  CHECK_FALSE(board.stops_after(4));
  CHECK(board.stops_after(5));
}

TEST_CASE("StopBoard: what one process writes all read that were forked since") {
  StopBoard board;
  const auto in_child = [&](const auto& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work() ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  };
  board.decide(1);
  in_child([&] { return board.has_decided(1) && !board.stops_after(1) && (board.asked() = 1) == 1; });
  CHECK(board.asked() == 1);
  in_child([&] {
    board.decide(2);
    return true;
  });
  CHECK(board.stops_after(2));
  in_child([&] { return !board.stops_after(1) && board.stops_after(2) && board.stops_after(3); });
}
