#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/fibers/fibers.hpp"
#include "sim/ranks/compute_limit.hpp"
#include "sim/ranks/interrupt.hpp"
#include "sim/ranks/rank_groups.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/terminal.hpp"
#include "sim/transport/memory_backend.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

class FiberWorld : public World {
 public:
  explicit FiberWorld(const Options& options) : options_(options), progress_(options.grid.size()), sessions_(ranks()) {
    const RunGroups all(options);
    std::map<std::string, MemoryGroup> in_memory;  // each made by the first rank that joins it
    const auto join = [&](const std::string& name, const Group& group, int number) {
      return in_memory.try_emplace(name, group.size(), group.name).first->second.backend(number);
    };
    take_turns("rendezvous", 0, [&](int rank) {
      have_fault(options_.fault, rank, 0);
      auto groups = std::make_unique<RankGroups>(all, options_.set_up.link, rank, progress_.slot(rank), join);
      sessions_[static_cast<std::size_t>(rank)] =
          std::make_unique<RankSession>(options_, rank, std::move(groups), progress_);
    });
  }

  bool is_parent() const override { return true; }

  StepReports run(const std::string& title, const RankBody& body, int step) override {
    StepReports reports(ranks());
    take_turns(title, step, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      reports[r] = sessions_[r]->run(step, title, body);
    });
    return reports;
  }

 private:
  static std::string program() { return interrupted_program().empty() ? "muonwalk" : interrupted_program(); }
  std::size_t ranks() const { return static_cast<std::size_t>(options_.grid.size()); }

  // Runs `work` on a fiber for each rank. The first thing that goes wrong on any of them ends the waits of all others,
  // and is thrown on: what follows is only its consequence.
  void take_turns(const std::string& title, int step, const std::function<void(int)>& work) {
    if (interrupted_) throw RunError(kInterrupted);
    const InterruptibleWork interruptible;
    std::optional<Failed> failure;
    int of_rank = -1;
    std::vector<bool> has_left(ranks(), false);
    std::string deadlock;
    Turns turns;
    if (options_.turns) turns.seed = *options_.turns * 1000003 + runs_++;  // another order in every step
    turns.why_end = [] { return InterruptibleWork::asked_to_end() ? std::string(kInterrupted) : std::string(); };
    turns.nobody_can_go_on = [&] {
      return deadlock = fmt::format("nothing can move in step '{}': {}", title, progress_.who_waits(has_left));
    };
    std::vector<int> order;  // of the first turns
    if (options_.turns && options_.verbose > 0 && step > 0)
      turns.begins = [&order](int rank) {
        if (order.size() < kShownTurns) order.push_back(rank);
      };
    const LastWords full(program(),
                         fmt::format("has used up its stack of {} KiB in step '{}'; look for a function that "
                                     "calls itself, and keep large arrays in a Matrix or a std::vector",
                                     turns.stack_bytes >> 10, title));
    turns.stack_is_full = [&full](int rank) { full.say_of(rank); };
    const ComputeLimit limit(progress_, title, kComputeTimeouts * options_.timeout_seconds);
    run_fibers(
        options_.grid.size(),
        [&](int rank) {
          try {
            work(rank);
          } catch (...) {
            if (!failure && deadlock.empty()) {
              failure = failure_now();
              of_rank = rank;
            }
            fiber::end_waits(fmt::format("rank {} failed", rank));
          }
          has_left[static_cast<std::size_t>(rank)] = true;
        },
        turns);
    interrupted_ = InterruptibleWork::asked_to_end();
    InterruptibleWork::end_if_asked();
    if (!order.empty())
      print_error_line(fmt::format("turns in step '{}': {}{}", title, fmt::join(order, " "),
                                   order.size() == kShownTurns ? " …" : ""));
    if (!deadlock.empty()) throw RunError(deadlock);
    if (failure) raise(*failure, fmt::format("rank {}", of_rank), title);
  }

  static constexpr std::size_t kShownTurns = 40;
  static constexpr const char* kInterrupted = "the run was interrupted; begin the lesson again";

  Options options_;
  Progress progress_;
  std::vector<std::unique_ptr<RankSession>> sessions_;
  std::uint64_t runs_ = 0;    // of anything in turns
  bool interrupted_ = false;  // then nothing runs any more
};

}  // namespace

std::unique_ptr<World> start_world(const Options& options) {
  if (options.world == WorldKind::fibers) return std::make_unique<FiberWorld>(options);
  return start_process_world(options);
}

}  // namespace muonwalk::sim
