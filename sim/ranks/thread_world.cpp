#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>

#include "sim/ranks/rank_groups.hpp"
#include "sim/ranks/world.hpp"
#include "sim/terminal/interruptible_work.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

// The first thing that went wrong on any rank; what follows on the others is only its consequence. A rank may notice
// that another one is gone before that one has said why.
struct FirstFailure {
  void note(int rank, const Failed& what) {
    const std::lock_guard<std::mutex> lock(mutex);
    timed_out = timed_out || what.kind == Failed::Kind::timed_out;
    if (failure && (failure->kind != Failed::Kind::peer_lost || what.kind == Failed::Kind::peer_lost)) return;
    failure = what;
    of_rank = rank;
  }
  std::mutex mutex;
  std::optional<Failed> failure;
  int of_rank = -1;
  bool timed_out = false;  // a rank has waited too long for another
};

class ThreadWorld : public World {
 public:
  explicit ThreadWorld(const Options& options)
      : options_(options),
        progress_(options.grid.size()),
        memory_(options, std::chrono::milliseconds(static_cast<long>(options.timeout_seconds * 1000))),
        sessions_(static_cast<std::size_t>(options.grid.size())) {
    on_every_rank("rendezvous", [&](int rank) {
      have_fault(options_.fault, rank, 0);
      sessions_[static_cast<std::size_t>(rank)] =
          std::make_unique<RankSession>(options_, rank, memory_.join(rank, progress_), progress_);
    });
  }

  bool is_parent() const override { return true; }

  StepReports run(const std::string& title, const RankBody& body, int step) override {
    StepReports reports(sessions_.size());
    on_every_rank(title, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      reports[r] = sessions_[r]->run(step, title, body);
    });
    return reports;
  }

 private:
  // Runs `work` on a thread for each rank. When one throws, the others are woken and the first error is thrown on. When
  // somebody interrupts, all are woken.
  void on_every_rank(const std::string& title, const std::function<void(int)>& work) {
    if (interrupted_) throw RunError(kInterrupted);
    const InterruptibleWork interruptible;
    FirstFailure first;
    const auto guarded = [&](int rank) {
      try {
        work(rank);
      } catch (...) {
        first.note(rank, failure_now());
        memory_.abort(fmt::format("rank {} failed", rank));
      }
    };
    std::vector<std::future<void>> threads;
    for (int rank = 0; rank < options_.grid.size(); ++rank) {
      try {
        threads.push_back(std::async(std::launch::async, guarded, rank));
      } catch (const std::system_error&) {
        first.note(rank, {Failed::Kind::other,
                          "the system allows no further thread; allow more (ulimit -u) or ask for fewer ranks", 0});
        memory_.abort(fmt::format("rank {} failed", rank));
        break;
      }
    }
    // A signal's handler may not wake anybody, so somebody has to look.
    bool woken = false;
    for (const auto& thread : threads)
      while (thread.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
        if (!woken && (woken = InterruptibleWork::asked_to_end())) memory_.abort(kInterrupted);
    threads.clear();  // waits for their end
    interrupted_ = InterruptibleWork::asked_to_end();
    InterruptibleWork::end_if_asked();
    const std::string cycle = first.timed_out ? progress_.cycle() : "";
    if (!cycle.empty()) first.failure->message = "it waited too long: " + cycle;
    if (first.failure) raise(*first.failure, fmt::format("rank {}", first.of_rank), title);
  }

  Options options_;
  Progress progress_;
  static constexpr const char* kInterrupted = "the run was interrupted; begin the lesson again";
  bool interrupted_ = false;  // then nothing runs any more
  MemoryGroups memory_;
  std::vector<std::unique_ptr<RankSession>> sessions_;
};

}  // namespace

std::unique_ptr<World> start_thread_world(const Options& options) { return std::make_unique<ThreadWorld>(options); }

std::unique_ptr<World> start_world(const Options& options) {
  return options.world == WorldKind::threads ? start_thread_world(options) : start_process_world(options);
}

}  // namespace muonwalk::sim
