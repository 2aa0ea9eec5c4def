#include <emscripten.h>
#include <emscripten/fiber.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/fibers/fiber_stacks.hpp"

// JavaScript keeps the exceptions that are being handled. Exchanges them with those that are put aside for this fiber.
EM_JS(void, swap_exceptions, (const void* fiber), {
  const aside = Fibers.exceptions || (Fibers.exceptions = new Map());
  if (aside.size == 0 && exceptionCaught.length == 0 && uncaughtExceptionCount == 0) return;
  const[caught, uncaught, last] = aside.get(fiber) || [ [], 0, 0 ];
  aside.delete(fiber);
  if (exceptionCaught.length > 0 || uncaughtExceptionCount > 0)
    aside.set(fiber, [ exceptionCaught, uncaughtExceptionCount, exceptionLast ]);
  exceptionCaught = caught;
  uncaughtExceptionCount = uncaught;
  exceptionLast = last;
});

namespace muonwalk::sim {
namespace {

constexpr std::size_t kAsyncifyBytes = 16384;  // for what a fiber's functions keep while others have the turn
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kCanaries = 64, kBetween = 64;
constexpr int kAlive = 0x5afe57ac;

// No page is forbidden here: every 64 bytes of the lowest 4 KiB of a stack lies a number that has to stay.
struct Fiber {
  emscripten_fiber_t context;
  std::unique_ptr<char[]> memory, asyncify;
  char* stack;  // in the memory, aligned as the compiler relies on, which `new` alone does not do
  int& canary(std::size_t i) const { return *reinterpret_cast<int*>(stack + i * kBetween); }
};

}  // namespace

struct FiberStacks::State {
  std::vector<Fiber> fibers;
  std::function<void(int)> entry, stack_is_full;
  emscripten_fiber_t scheduler;
  std::unique_ptr<char[]> schedulers_asyncify{new char[kAsyncifyBytes]};
  int running = -1;

  // What a fiber begins with; it must not return.
  static void live(void* of) {
    State& state = *static_cast<State*>(of);
    state.entry(state.running);
    emscripten_fiber_swap(&state.fibers[static_cast<std::size_t>(state.running)].context, &state.scheduler);
  }
};

FiberStacks::FiberStacks(int fibers, std::size_t stack_bytes, std::function<void(int)> entry,
                         std::function<void(int)> stack_is_full)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.entry = std::move(entry);
  state.stack_is_full = std::move(stack_is_full);
  state.fibers.resize(static_cast<std::size_t>(fibers));
  emscripten_fiber_init_from_current_context(&state.scheduler, state.schedulers_asyncify.get(), kAsyncifyBytes);
  for (Fiber& fiber : state.fibers) {
    fiber.memory.reset(new char[stack_bytes + kAlignment]);  // not written: what is never touched costs nothing
    fiber.stack = fiber.memory.get() + kAlignment - reinterpret_cast<std::uintptr_t>(fiber.memory.get()) % kAlignment;
    fiber.asyncify.reset(new char[kAsyncifyBytes]);
    for (std::size_t i = 0; i < kCanaries; ++i) fiber.canary(i) = kAlive;
    emscripten_fiber_init(&fiber.context, State::live, &state, fiber.stack, stack_bytes / kAlignment * kAlignment,
                          fiber.asyncify.get(), kAsyncifyBytes);
  }
}

FiberStacks::~FiberStacks() = default;

void FiberStacks::enter(int number) {
  Fiber& fiber = state_->fibers[static_cast<std::size_t>(number)];
  state_->running = number;
  swap_exceptions(&fiber);
  emscripten_fiber_swap(&state_->scheduler, &fiber.context);
  swap_exceptions(&fiber);
  state_->running = -1;
  for (std::size_t i = 0; i < kCanaries; ++i)
    if (fiber.canary(i) != kAlive && state_->stack_is_full) state_->stack_is_full(number);
}

void FiberStacks::leave() {
  emscripten_fiber_swap(&state_->fibers[static_cast<std::size_t>(state_->running)].context, &state_->scheduler);
}

}  // namespace muonwalk::sim
