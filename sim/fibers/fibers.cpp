#include "sim/fibers/fibers.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/fibers/fiber_stacks.hpp"
#include "src/errors.hpp"
#include "src/numerics/memory_meter.hpp"

namespace muonwalk::sim {
namespace {

// Of all fibers that this thread ever runs, so that what outlives a run, such as a link, goes on.
thread_local std::int64_t virtual_clock_ns = 0;

class Scheduler {
 public:
  Scheduler(int fibers, const std::function<void(int)>& body, const Turns& turns)
      : turns_(turns),
        fibers_(static_cast<std::size_t>(fibers)),
        living_(fibers),
        draw_(turns.seed.value_or(0) * 2 + 1),
        stacks_(
            fibers, turns.stack_bytes, [this, &body](int fiber) { live(fiber, body); }, turns.stack_is_full) {
    for (int fiber = 0; fiber < fibers; ++fiber) ready_.push_back(fiber);
    outer_ = std::exchange(current, this);
  }
  ~Scheduler() { current = outer_; }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  static Scheduler& here() {
    if (current == nullptr || current->running_ < 0)
      throw std::logic_error("only a rank that takes turns with others can wait for its turn");
    return *current;
  }

  void run() {
    while (living_ > 0) {
      if (turns_.why_end && !ended_) {
        const std::string why = turns_.why_end();
        if (!why.empty()) end_waits(why);
      }
      if (ready_.empty() && !asleep_.empty())
        wake_next_sleeper();
      else if (ready_.empty())
        end_waits(turns_.nobody_can_go_on ? turns_.nobody_can_go_on() : "nobody can go on");
      else
        give_turn(next());
    }
  }

  int running() const { return running_; }
  bool draws() const { return turns_.seed.has_value(); }

  void wait() {
    require_going_on();
    Fiber& fiber = of(running_);
    if (std::exchange(fiber.woken, false)) return;
    fiber.waits = true;
    hand_on();
    fiber.woken = false;
  }

  void wake(int number) {
    Fiber& fiber = of(number);
    fiber.woken = true;
    if (std::exchange(fiber.waits, false)) ready_.push_back(number);
  }

  void yield() {
    require_going_on();
    ready_.push_back(running_);
    hand_on();
  }

  void sleep_until(std::int64_t ns) {
    require_going_on();
    asleep_.emplace(ns, running_);
    hand_on();
  }

  void end_waits(const std::string& reason) {
    if (ended_) return;
    ended_ = reason;
    for (std::size_t fiber = 0; fiber < fibers_.size(); ++fiber)
      if (std::exchange(fibers_[fiber].waits, false)) ready_.push_back(static_cast<int>(fiber));
    for (const auto& [when, fiber] : asleep_) ready_.push_back(fiber);
    asleep_.clear();
  }

  static inline thread_local Scheduler* current = nullptr;

 private:
  struct Fiber {
    bool waits = false;            // and nobody has woken it yet
    bool woken = false;            // since it last waited
    MemoryMeter* meter = nullptr;  // that counts its memory
  };

  Fiber& of(int fiber) { return fibers_[static_cast<std::size_t>(fiber)]; }

  void live(int fiber, const std::function<void(int)>& body) noexcept {
    body(fiber);
    --living_;
  }

  // The one that is ready for longest, or any of them.
  int next() {
    if (draws()) {  // xorshift64: quick, and good enough to be surprised by
      draw_ ^= draw_ << 13;
      draw_ ^= draw_ >> 7;
      draw_ ^= draw_ << 17;
      std::swap(ready_.front(), ready_[draw_ % ready_.size()]);
    }
    const int fiber = ready_.front();
    ready_.pop_front();
    return fiber;
  }

  void give_turn(int fiber) {
    running_ = fiber;
    if (turns_.begins) turns_.begins(fiber);
    const auto swap_meters = [&] { of(fiber).meter = MemoryMeter::exchange(of(fiber).meter); };
    swap_meters();
    stacks_.enter(fiber);
    swap_meters();
    running_ = -1;
  }

  void wake_next_sleeper() {
    const auto [when, fiber] = *asleep_.begin();
    asleep_.erase(asleep_.begin());
    virtual_clock_ns = std::max(virtual_clock_ns, when);
    ready_.push_back(fiber);
  }

  // For a fiber that is noted somewhere as one that will have another turn. Who must not go on is noted nowhere: it may
  // have returned by the time that its turn comes.
  void hand_on() {
    stacks_.leave();
    require_going_on();
  }

  void require_going_on() const {
    if (ended_) throw RunError(*ended_);
  }

  const Turns& turns_;
  std::vector<Fiber> fibers_;
  int living_;  // have not returned
  int running_ = -1;
  std::deque<int> ready_;
  std::multimap<std::int64_t, int> asleep_;
  std::optional<std::string> ended_;
  std::uint64_t draw_;
  FiberStacks stacks_;
  Scheduler* outer_ = nullptr;
};

}  // namespace

void run_fibers(int fibers, const std::function<void(int fiber)>& body, const Turns& turns) {
  if (fibers > 0) Scheduler(fibers, body, turns).run();
}

namespace fiber {

bool inside() { return Scheduler::current != nullptr && Scheduler::current->running() >= 0; }
int self() { return Scheduler::here().running(); }
void wait() { Scheduler::here().wait(); }
void wake(int fiber) { Scheduler::here().wake(fiber); }
void may_hand_on() {
  if (Scheduler::here().draws()) Scheduler::here().yield();
}
void end_waits(const std::string& reason) { Scheduler::here().end_waits(reason); }
std::int64_t clock_ns() { return virtual_clock_ns; }
void sleep_until(std::int64_t ns) { Scheduler::here().sleep_until(ns); }

}  // namespace fiber
}  // namespace muonwalk::sim
