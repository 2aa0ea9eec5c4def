#include <cxxabi.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "sim/fibers/fiber_stacks.hpp"
#include "src/errors.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace muonwalk::sim {
namespace {

namespace context = boost::context;

// AddressSanitizer has to know of each switch: which stack is left, and which one is entered.
struct KnownStack {
#if defined(__SANITIZE_ADDRESS__)
  void leave_for(const KnownStack& other, bool for_good = false) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_, other.bottom_, other.bytes_);
  }
  void entered(KnownStack& from) { __sanitizer_finish_switch_fiber(fake_, &from.bottom_, &from.bytes_); }
  void is(const context::stack_context& stack) {
    bottom_ = static_cast<const char*>(stack.sp) - stack.size;
    bytes_ = stack.size;
  }

 private:
  void* fake_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
#else
  void leave_for(const KnownStack&, bool = false) {}
  void entered(KnownStack&) {}
  void is(const context::stack_context&) {}
#endif
};

// The stacks of all fibers in one piece of memory. Below each lies a guard that nobody may touch, wide enough that a
// function's frame does not step over it. Pages that are never touched cost nothing.
class StackMemory {
 public:
  static constexpr std::size_t kGuard = 65536;

  StackMemory(int stacks, std::size_t stack_bytes)
      : each_(kGuard + (stack_bytes + kGuard - 1) / kGuard * kGuard), bytes_(static_cast<std::size_t>(stacks) * each_) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw RunError("the system has no room for " + std::to_string(stacks) + " stacks of " +
                     std::to_string((each_ - kGuard) >> 10) + " KiB; ask for fewer ranks, or allow more (ulimit -v)");
    memory_ = static_cast<char*>(memory);
#if defined(__SANITIZE_ADDRESS__)
    // The last frames of a fiber never return. What AddressSanitizer forbade around their variables would still be
    // forbidden to the stacks that lie here now.
    __asan_unpoison_memory_region(memory_, bytes_);
#endif
    for (int stack = 0; stack < stacks; ++stack) mprotect(guard(stack), kGuard, PROT_NONE);
  }
  ~StackMemory() { munmap(memory_, bytes_); }
  StackMemory(const StackMemory&) = delete;
  StackMemory& operator=(const StackMemory&) = delete;

  char* guard(int stack) const { return memory_ + static_cast<std::size_t>(stack) * each_; }
  context::stack_context stack(int number) const {
    context::stack_context stack;
    stack.size = each_ - kGuard;
    stack.sp = guard(number) + each_;
    return stack;
  }

 private:
  std::size_t each_;
  std::size_t bytes_;
  char* memory_ = nullptr;
};

// What Boost takes for an allocator: the stack is there already, and stays.
struct StackThatStays {
  void deallocate(context::stack_context&) {}
};

// The exceptions that a fiber is handling, as the C++ ABI keeps them for a thread.
class Exceptions {
 public:
  // `thread` is where the C++ runtime keeps those of this thread.
  void swap(void* thread) {
    const Exceptions mine = *this;
    std::memcpy(static_cast<void*>(this), thread, sizeof mine);
    std::memcpy(thread, &mine, sizeof mine);
  }

 private:
  void* caught_ = nullptr;
  unsigned int uncaught_ = 0;
};

struct Fiber {
  context::fiber rest;  // where it goes on; empty while it runs, and once it has returned
  KnownStack known;
  Exceptions exceptions;
};

}  // namespace

struct FiberStacks::State {
  State(int fibers_wanted, std::size_t stack_bytes)
      : stacks(fibers_wanted, stack_bytes), fibers(static_cast<std::size_t>(fibers_wanted)) {}

  // Who touches the guard below the running fiber's stack has used it up; the handler needs a stack of its own to say
  // so. Everything else goes where it went before.
  static void on_segmentation_fault(int, siginfo_t* info, void*) {
    const State* state = here;
    if (state != nullptr && state->running >= 0) {
      const char* guard = state->stacks.guard(state->running);
      const char* touched = static_cast<const char*>(info->si_addr);
      if (touched >= guard && touched < guard + StackMemory::kGuard) state->stack_is_full(state->running);
    }
    // The instruction is tried again.
    if (state == nullptr || sigaction(SIGSEGV, &state->action_before, nullptr) != 0) signal(SIGSEGV, SIG_DFL);
  }

  void watch_stacks() {
    stack_t alternative{};
    alternative.ss_sp = signal_stack.data();
    alternative.ss_size = signal_stack.size();
    struct sigaction action {};
    action.sa_sigaction = on_segmentation_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    watches = sigaltstack(&alternative, &stack_before) == 0 && sigaction(SIGSEGV, &action, &action_before) == 0;
  }

  static thread_local State* here;
  void* exceptions_of_thread = abi::__cxa_get_globals();
  StackMemory stacks;
  std::vector<Fiber> fibers;
  std::function<void(int)> stack_is_full;
  context::fiber scheduler;
  KnownStack schedulers_stack;
  int running = -1;
  State* outer = nullptr;  // of a run within which this one is
  std::array<char, 65536> signal_stack;
  stack_t stack_before{};
  struct sigaction action_before {};
  bool watches = false;
};

thread_local FiberStacks::State* FiberStacks::State::here = nullptr;

FiberStacks::FiberStacks(int fibers, std::size_t stack_bytes, std::function<void(int)> entry,
                         std::function<void(int)> stack_is_full)
    : state_(std::make_unique<State>(fibers, stack_bytes)) {
  State& state = *state_;
  state.stack_is_full = std::move(stack_is_full);
  for (int number = 0; number < fibers; ++number) {
    Fiber& fiber = state.fibers[static_cast<std::size_t>(number)];
    const context::stack_context stack = state.stacks.stack(number);
    const auto live = [&state, &fiber, entry, number](context::fiber&& scheduler) {
      fiber.known.entered(state.schedulers_stack);
      state.scheduler = std::move(scheduler);
      entry(number);
      fiber.known.leave_for(state.schedulers_stack, true);
      return std::move(state.scheduler);
    };
    fiber.rest =
        context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), StackThatStays(), live);
    fiber.known.is(stack);
  }
  state.outer = std::exchange(State::here, &state);
  if (state.stack_is_full) state.watch_stacks();
}

FiberStacks::~FiberStacks() {
  if (state_->watches) {
    sigaction(SIGSEGV, &state_->action_before, nullptr);
    sigaltstack(&state_->stack_before, nullptr);
  }
  State::here = state_->outer;
}

void FiberStacks::enter(int number) {
  Fiber& fiber = state_->fibers[static_cast<std::size_t>(number)];
  state_->running = number;
  fiber.exceptions.swap(state_->exceptions_of_thread);
  state_->schedulers_stack.leave_for(fiber.known);
  fiber.rest = std::move(fiber.rest).resume();
  KnownStack nobody;
  state_->schedulers_stack.entered(nobody);
  fiber.exceptions.swap(state_->exceptions_of_thread);
  state_->running = -1;
}

void FiberStacks::leave() {
  Fiber& fiber = state_->fibers[static_cast<std::size_t>(state_->running)];
  fiber.known.leave_for(state_->schedulers_stack);
  state_->scheduler = std::move(state_->scheduler).resume();
  fiber.known.entered(state_->schedulers_stack);
}

}  // namespace muonwalk::sim
