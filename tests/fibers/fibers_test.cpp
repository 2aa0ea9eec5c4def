// Functions that take turns on one thread: who goes on when, what each keeps for itself, and how it ends when nobody
// can go on.

#include "sim/fibers/fibers.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/numerics/memory_meter.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// What the RunError says that this ends with; empty where it does not.
template <class Work>
std::string sentence_of(const Work& work) {
  try {
    work();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

Turns drawn(std::uint64_t seed) {
  Turns turns;
  turns.seed = seed;
  return turns;
}

// Each fiber hands the turn on `times` times; the order in which they had it.
std::vector<int> order_of(int fibers, int times, const Turns& turns) {
  std::vector<int> order;
  run_fibers(
      fibers,
      [&](int me) {
        for (int i = 0; i < times; ++i) {
          order.push_back(me);
          fiber::wake(me);  // to be woken before one waits is as good
          fiber::wait();
          fiber::may_hand_on();
        }
      },
      turns);
  return order;
}

}  // namespace

TEST_CASE("fibers: all run to their end, by their numbers, also one within another, and nobody is inside afterwards") {
  for (const int fibers : {0, 1, 2, 7, 300}) {
    std::vector<int> seen;
    run_fibers(fibers,
               [&](int me) {
                 CHECK(fiber::inside());
                 CHECK(fiber::self() == me);
                 int within = 0;
                 run_fibers(3, [&](int inner) { within += 10 * inner + fiber::self(); }, {});
                 CHECK(within == 33);
                 CHECK(fiber::self() == me);
                 seen.push_back(me);
               },
               {});
    std::vector<int> all(static_cast<std::size_t>(fibers));
    std::iota(all.begin(), all.end(), 0);
    CHECK(seen == all);
    CHECK_FALSE(fiber::inside());
  }
  CHECK_THROWS_AS(fiber::wait(), std::logic_error);
}

TEST_CASE("fibers: a seed draws an order of turns, the same each time; seeds differ, and every fiber has its share") {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<int> order = order_of(5, 8, drawn(seed));
    CHECK(order == order_of(5, 8, drawn(seed)));
    for (int me = 0; me < 5; ++me) CHECK(std::count(order.begin(), order.end(), me) == 8);
    orders.insert(order);
  }
  CHECK(orders.size() == 20);
}

TEST_CASE("fibers: tokens that go around any ring, woken in any order, come back as often as they were sent") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    const int fibers = 1 + static_cast<int>(random() % 12), rounds = 1 + static_cast<int>(random() % 9);
    std::vector<int> held(static_cast<std::size_t>(fibers), 0), passed(static_cast<std::size_t>(fibers), 0);
    held[0] = 1 + static_cast<int>(random() % 3);
    const int tokens = held[0];
    run_fibers(
        fibers,
        [&](int me) {
          const auto here = static_cast<std::size_t>(me), next = static_cast<std::size_t>((me + 1) % fibers);
          for (int i = 0; i < tokens * rounds; ++i) {
            while (held[here] == 0) fiber::wait();
            --held[here], ++held[next], ++passed[here];
            fiber::wake(static_cast<int>(next));
          }
        },
        seed % 2 ? drawn(seed) : Turns());
    CAPTURE(seed);
    for (const int times : passed) CHECK(times == tokens * rounds);
    CHECK(held[0] == tokens);
  }
}

TEST_CASE("fibers: each has its own exceptions in flight, and its own meter of memory") {
  constexpr int kFibers = 8;
  int wrong = 0;
  std::vector<std::int64_t> peaks(kFibers);
  run_fibers(
      kFibers,
      [&](int me) {
        MemoryMeter meter;
        const MeterScope scope(meter);
        const std::string mine = "error of " + std::to_string(me);
        for (int i = 0; i < 100; ++i) try {
            try {
              throw std::runtime_error(mine);
            } catch (const std::exception&) {
              const Flat held(static_cast<std::size_t>(me + 1));
              fiber::may_hand_on();  // the others throw and catch theirs meanwhile
              throw;
            }
          } catch (const std::exception& error) {
            wrong += error.what() != mine || std::uncaught_exceptions() != 0;
          }
        peaks[static_cast<std::size_t>(me)] = meter.peak();
      },
      drawn(3));
  CHECK(wrong == 0);
  for (int me = 0; me < kFibers; ++me) CHECK(peaks[static_cast<std::size_t>(me)] == me + 1);
  CHECK(MemoryMeter::current() == nullptr);
}

TEST_CASE("fibers: when nobody can go on, every wait ends with the same reason, and it is asked for once") {
  int asked = 0;
  Turns turns;
  turns.nobody_can_go_on = [&] { return "asked " + std::to_string(++asked); };
  std::vector<std::string> told(4);
  run_fibers(
      4,
      [&](int me) {
        if (me == 2) return;  // has left
        told[static_cast<std::size_t>(me)] = sentence_of([] { fiber::wait(); });
        CHECK_THROWS_AS(fiber::wait(), RunError);  // and so does every later one
      },
      turns);
  CHECK(told == std::vector<std::string>{"asked 1", "asked 1", "", "asked 1"});
}

TEST_CASE("fibers: who asks for the end is heard before the next turn, and the first reason counts") {
  for (const bool from_within : {false, true}) {
    int turn = 0;
    Turns turns;
    if (!from_within) turns.why_end = [&] { return ++turn > 5 ? std::string("somebody asked") : std::string(); };
    std::vector<std::string> told(3);
    run_fibers(
        3,
        [&](int me) {
          if (from_within && me == 1) {
            fiber::end_waits("somebody asked");
            fiber::end_waits("later");
          }
          told[static_cast<std::size_t>(me)] = sentence_of([] {
            while (true) fiber::sleep_until(fiber::clock_ns() + 1);
          });
        },
        turns);
    CHECK(told == std::vector<std::string>(3, "somebody asked"));
  }
}

TEST_CASE("fibers: once waits have ended, nobody who has returned gets another turn, whatever was asked for last") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::vector<int> ends(6, 0);
    run_fibers(
        6,
        [&](int me) {
          std::mt19937_64 random(seed * 6 + static_cast<std::uint64_t>(me));
          while (sentence_of([&] {
                   const int other = static_cast<int>(random() % 6);
                   switch (random() % (me == 0 ? 5 : 4)) {
                     case 0:
                       return fiber::wait();
                     case 1:
                       return fiber::wake(other);
                     case 2:
                       return fiber::may_hand_on();
                     case 3:
                       return fiber::sleep_until(fiber::clock_ns() + static_cast<std::int64_t>(random() % 9));
                     default:
                       return fiber::end_waits("over");
                   }
                 }).empty()) {
          }
          // Each of these says that it is over, and leaves nothing behind that would be given a turn.
          for (const auto& last : std::vector<std::function<void()>>{
                   [] { fiber::wait(); }, [] { fiber::may_hand_on(); }, [] { fiber::sleep_until(0); }})
            CHECK_FALSE(sentence_of(last).empty());
          for (int other = 0; other < 6; ++other) fiber::wake(other);
          ++ends[static_cast<std::size_t>(me)];
        },
        drawn(seed));
    CHECK(ends == std::vector<int>(6, 1));
  }
}

TEST_CASE("fibers: time is virtual: it passes where all wait or sleep, to the next who wakes, and as they asked") {
  const std::int64_t began = fiber::clock_ns();
  std::vector<std::int64_t> woke;
  std::vector<int> who;
  run_fibers(4,
             [&](int me) {
               if (me == 3) {  // computes all the while, which takes no time
                 fiber::wait();
                 return;
               }
               for (const std::int64_t ns : {300, 700}) {
                 fiber::sleep_until(began + ns * (me + 1));
                 woke.push_back(fiber::clock_ns() - began);
                 who.push_back(me);
               }
               if (me == 2) fiber::wake(3);
             },
             {});
  CHECK(woke == std::vector<std::int64_t>{300, 600, 700, 900, 1400, 2100});
  CHECK(who == std::vector<int>{0, 1, 0, 2, 1, 2});
  CHECK(fiber::clock_ns() - began == 2100);
}

namespace {

// As deep as the stack of a fiber lets it: frames of `bytes`, so that some step over a guard that is too narrow.
template <std::size_t bytes>
int go_down(int depth) {
  volatile char frame[bytes];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? frame[0] : go_down<bytes>(depth - 1) + frame[0];
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("fibers: a stack forbids nothing that the stacks which lay there before had forbidden") {
  for (const std::size_t stack_bytes : {65536, 196608, 65536, 458752}) {  // each time the stacks end elsewhere
    Turns turns;
    turns.stack_bytes = stack_bytes;
    run_fibers(
        6,
        [&](int) {
          const std::size_t below = stack_bytes - 16384;
          char* lowest = static_cast<char*>(__builtin_frame_address(0)) - below - 1024;
          CHECK(__asan_region_is_poisoned(lowest, below - 4096) == nullptr);
        },
        turns);
  }
}
#endif

#if defined(__EMSCRIPTEN__)
template <std::size_t bytes>
[[gnu::noinline]] void fill() {
  volatile char frame[bytes];
  for (auto& byte : frame) byte = 1;
}

TEST_CASE("fibers: where no page can be guarded, who has used up the stack is known at the end of its turn") {
  std::vector<int> full;
  Turns turns;
  turns.stack_bytes = 65536;
  turns.stack_is_full = [&](int fiber) { full.push_back(fiber); };
  run_fibers(
      4,
      [&](int me) {
        if (me == 1) fill<55000>();
        if (me == 2) fill<62500>();
      },
      turns);
  REQUIRE_FALSE(full.empty());
  for (const int fiber : full) CHECK(fiber == 2);
}
#elif !defined(__SANITIZE_ADDRESS__)  // which has a sentence of its own
TEST_CASE("fibers: who uses up the stack is told apart from a crash, whatever the size of the frames") {
  const auto code_of = [](int (*deep)(int)) {
    // In a child: it ends there.
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      Turns turns;
      turns.stack_is_full = [](int fiber) { _exit(40 + fiber); };
      run_fibers(
          4,
          [&](int me) {
            if (me == 2) deep(1 << 20);
          },
          turns);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  };
  CHECK(code_of(go_down<64>) == 42);
  CHECK(code_of(go_down<4096>) == 42);
  CHECK(code_of(go_down<40000>) == 42);
  // A pointer to nowhere is a crash, as ever.
  CHECK(code_of([](int) {
          volatile std::uintptr_t nowhere = 8;
          return *reinterpret_cast<volatile int*>(nowhere);
        }) == -SIGSEGV);
}
#endif
