#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace muonwalk::sim {

/// Stacks to switch between, each with the exceptions that are handled on it, which C++ keeps per thread: the one part
/// of fibers that depends on the machine. One fiber at a time runs, or the scheduler that made them.
class FiberStacks {
 public:
  /// `entry(fiber)` runs on the fiber's stack when it is entered for the first time. `stack_is_full` is called
  /// for the fiber that runs when its stack is used up (on the signal stack; in WebAssembly, when its turn ends), and
  /// must not return.
  FiberStacks(int fibers, std::size_t stack_bytes, std::function<void(int)> entry,
              std::function<void(int)> stack_is_full);
  /// Every fiber must have returned from its entry, or never been entered.
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  /// From the scheduler: goes on with this fiber, and returns when it has left or returned.
  void enter(int fiber);
  /// From the fiber that runs: goes back to the scheduler, and returns when the fiber is entered again.
  void leave();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muonwalk::sim
