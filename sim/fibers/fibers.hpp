#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace muonwalk::sim {

/// The most ranks that a lesson starts as fibers.
constexpr int kMostFibers = 2048;

/// How fibers take turns. Nobody but the fiber itself can end a turn, so between two places where it waits a fiber has
/// the memory of the program to itself.
struct Turns {
  /// Draws who is next whenever a turn ends, the same order for the same seed; without one the turn goes round.
  std::optional<std::uint64_t> seed;
  /// A fiber's stack. What is never touched costs nothing.
  std::size_t stack_bytes = std::size_t{512} << 10;
  /// Asked once, when every fiber waits for another: says who waits for what. All waits then end with these words.
  std::function<std::string()> nobody_can_go_on = nullptr;
  /// Asked before each turn: a reason for all waits to end, or an empty text.
  std::function<std::string()> why_end = nullptr;
  /// Told of each turn when it begins.
  std::function<void(int fiber)> begins = nullptr;
  /// Called, on the signal stack, when this fiber has used up its stack; must not return.
  std::function<void(int fiber)> stack_is_full = nullptr;
};

/// Calls `body(0)` to `body(fibers − 1)`, each on a stack of its own, in turns on the calling thread, and returns when
/// all of them have returned. `body` must not throw. Needs no lock, no clock and no system call for a turn.
void run_fibers(int fibers, const std::function<void(int fiber)>& body, const Turns& turns);

/// What the fiber that has the turn may call. All but `inside` and `clock_ns` throw std::logic_error outside of one.
/// `wake` and `end_waits` concern the fibers of the same run.
namespace fiber {

/// Whether a fiber has the turn on this thread.
bool inside();
/// The number of the fiber that has the turn.
int self();
/// Hands the turn on. Returns after somebody has called `wake` for this fiber, which may have been before. Throws
/// RunError with the reason when waits were ended.
void wait();
/// Lets a fiber go on that waits, or that will wait.
void wake(int fiber);
/// Where turns are drawn, perhaps hands the turn on; everywhere else it does nothing. For places at which a fiber could
/// have had to wait.
void may_hand_on();
/// Ends all waits, from now on, with this reason; the first reason counts.
void end_waits(const std::string& reason);

/// Nanoseconds on a clock that all fibers of this thread share. It stands still while any of them can go on, and jumps
/// to where the next sleeper wakes when none can: time is virtual, and the same on every machine.
std::int64_t clock_ns();
/// Hands the turn on until then. Throws as `wait` does.
void sleep_until(std::int64_t ns);

}  // namespace fiber
}  // namespace muonwalk::sim
