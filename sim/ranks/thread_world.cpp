#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "sim/ranks/interrupt.hpp"
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

// The fewest files that ranks of one process hold open once they are connected over Gloo: both ends of every
// connection, an event loop per rank, and the three that every program has. Connecting takes more of them, for a
// moment.
long files_over_gloo(const Options& options) {
  long files = 3 + options.grid.size();
  for (int rank = 0; rank < options.grid.size(); ++rank)
    for (const Group& group : groups_of_rank(options, rank)) files += std::max(group.size() - 1, 0);
  return files;
}

// Where files are too few from the start, that is said before any rank fails at it: then whichever rank comes first
// would tell of what it has just tried, and by the time the system is asked for the reason another one may have closed
// its files.
void require_files_over_gloo(const Options& options) {
  rlimit allowed{};
  if (getrlimit(RLIMIT_NOFILE, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return;
  const long needed = files_over_gloo(options);
  if (static_cast<rlim_t>(needed) > allowed.rlim_cur)
    throw RunError(fmt::format(
        "too many files are open when {} ranks are threads of one process over Gloo: they need at least {}, and it may "
        "have {}; allow more (ulimit -n), ask for fewer ranks, or give each a process of its own",
        options.grid.size(), needed, allowed.rlim_cur));
}

class ThreadWorld : public World {
 public:
  explicit ThreadWorld(const Options& options) : options_(options), progress_(options.grid.size()) {
    const auto timeout = std::chrono::milliseconds(static_cast<long>(options.timeout_seconds * 1000));
    const int ranks = options.grid.size();
    sessions_.resize(static_cast<std::size_t>(ranks));
    if (options.transport == TransportKind::memory) {
      memory_ = std::make_unique<MemoryGroups>(options, timeout);
    } else {
      require_files_over_gloo(options);
      GlooDevice::on_overrun([](const char* sentence) { end_program(sentence); });
      store_ = board_for(options);
    }
    on_every_rank("rendezvous", [&](int rank) {
      have_fault(options_.fault, rank, 0);
      auto groups =
          memory_ ? memory_->join(rank, progress_) : connect_over_gloo(options_, rank, *store_, progress_, timeout);
      sessions_[static_cast<std::size_t>(rank)] =
          std::make_unique<RankSession>(options_, rank, std::move(groups), progress_);
    });
  }

  ~ThreadWorld() override {
    // Closing Gloo's connections takes 10 ms per pair when ranks do it one after the other, so they do it together.
    std::vector<std::thread> threads;
    try {
      for (auto& session : sessions_) threads.emplace_back([&session] { session.reset(); });
    } catch (const std::system_error&) {
      // Where the system allows no further thread, the rest are closed one after the other below.
    }
    for (auto& thread : threads) thread.join();
    sessions_.clear();
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
        wake_the_others(rank);
      }
    };
    std::vector<std::future<void>> threads;
    for (int rank = 0; rank < options_.grid.size(); ++rank) {
      try {
        threads.push_back(std::async(std::launch::async, guarded, rank));
      } catch (const std::system_error&) {
        first.note(rank, {Failed::Kind::other,
                          "the system allows no further thread; allow more (ulimit -u) or ask for fewer ranks", 0});
        for (int other = rank; other < options_.grid.size(); ++other) wake_the_others(other);
        break;
      }
    }
    // A signal's handler may not wake anybody, so somebody has to look.
    bool woken = false;
    for (const auto& thread : threads)
      while (thread.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
        if (!woken && (woken = InterruptibleWork::asked_to_end())) wake_everybody();
    threads.clear();  // waits for their end
    interrupted_ = InterruptibleWork::asked_to_end();
    InterruptibleWork::end_if_asked();
    const std::string cycle = first.timed_out ? progress_.cycle() : "";
    if (!cycle.empty()) first.failure->message = "it waited too long: " + cycle;
    if (first.failure) raise(*first.failure, fmt::format("rank {}", first.of_rank), title);
  }

  // Over Gloo, ranks that wait are left to the limit of their wait.
  void wake_everybody() {
    if (memory_) memory_->abort(kInterrupted);
    if (store_) store_->give_up(kInterrupted);
  }

  void wake_the_others(int failed_rank) {
    const std::string reason = fmt::format("rank {} failed", failed_rank);
    if (memory_) memory_->abort(reason);
    if (store_) store_->give_up(reason);
    auto& session = sessions_[static_cast<std::size_t>(failed_rank)];
    if (session) session->groups().close(reason);
  }

  Options options_;
  Progress progress_;
  static constexpr const char* kInterrupted = "the run was interrupted; begin the lesson again";
  bool interrupted_ = false;  // then nothing runs any more
  std::unique_ptr<MemoryGroups> memory_;
  std::unique_ptr<KeyStore> store_;
  std::vector<std::unique_ptr<RankSession>> sessions_;
};

}  // namespace

std::unique_ptr<World> start_thread_world(const Options& options) { return std::make_unique<ThreadWorld>(options); }

std::unique_ptr<World> start_world(const Options& options) {
  return options.world == WorldKind::threads ? start_thread_world(options) : start_process_world(options);
}

}  // namespace muonwalk::sim
