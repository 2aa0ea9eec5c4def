#include <unistd.h>

#include <cstdio>
#include <optional>

#include "sim/ranks/agent.hpp"
#include "sim/ranks/gloo_groups.hpp"
#include "sim/ranks/launched_run.hpp"
#include "sim/ranks/rank_process.hpp"
#include "sim/ranks/rank_side.hpp"
#include "sim/ranks/rank_watch.hpp"
#include "sim/ranks/remote_rank.hpp"
#include "sim/ranks/world.hpp"

namespace muonwalk::sim {
namespace {

// The ranks of a launched run. Rank 0 is a child of this process, the others are agents' children; each has a key store
// of its own, so what one writes is told to all others.
class LaunchedWatch : public RankWatch {
 public:
  LaunchedWatch(const Options& options, const Progress& progress, LaunchedRun& run, KeyStore& store)
      : RankWatch(options, progress), run_(run), store_(store) {}

  void say_goodbye() {
    for (RemoteRank* rank : remote_) rank->say_goodbye();
  }
  void add_remote(std::unique_ptr<RemoteRank> rank) {
    remote_.push_back(rank.get());
    add(std::move(rank));
  }

 protected:
  void news_taken() override {
    for (std::size_t r = 0; r < ranks().size(); ++r)
      for (const Posted& posted : ranks()[r]->take_posted()) {
        if (r != 0) store_.set(posted.key, posted.value);
        for (std::size_t other = 0; other < remote_.size(); ++other)
          if (other + 1 != r) remote_[other]->tell(posted);
      }
    if (run_.launcher_is_gone()) give_up("the launcher that has started this run is gone, so the run was ended");
  }

 private:
  LaunchedRun& run_;
  KeyStore& store_;
  std::vector<RemoteRank*> remote_;  // ranks 1, 2, …
};

// A world whose ranks were launched, as one of the launched processes sees it, or as the rank that it has forked. In an
// agent, the constructor returns when the world is over: from there on the agent goes through the program as a rank
// that does nothing.
class LaunchedWorld : public World {
 public:
  LaunchedWorld(const Options& options, LaunchedRun& run)
      : run_(run),
        store_(board_for(options)),
        progress_(std::make_unique<Progress>(options.grid.size())),
        goodbye_(open_pipe()),
        watch_(options, *progress_, run, *store_) {
    std::fflush(nullptr);  // what is still in a buffer would be printed once by every process
    try {
      require_no_other_threads();
      if (run_.is_agent())
        serve(options);
      else
        start(options);
    } catch (...) {  // the destructor of an object that was never whole does not run
      watch_.end_ranks();
      close_pipe(goodbye_);
      throw;
    }
  }

  ~LaunchedWorld() override {
    if (in_rank_) in_rank_->leave();
    if (run_.is_agent()) return;
    let_go();
    watch_.let_leave();
    run_.end_world(finished_);
  }

  bool is_parent() const override { return !in_rank_ && !run_.is_agent(); }

  void finish() override {
    let_go();
    watch_.require_ended(runs_);
    finished_ = true;
  }

  StepReports run(const std::string& title, const RankBody& body, int step) override {
    ++runs_;
    if (is_parent()) return watch_.wait_for_run(runs_, title);
    if (in_rank_) in_rank_->run(step, title, body);
    return {};
  }

 private:
  void start(const Options& options) {
    store_->set_secret(run_.begin_world());
    auto own = fork_own(options);
    if (own == nullptr) return;
    own->lives_on(run_.own().host);
    watch_.add(std::move(own));
    for (int rank = 1; rank < options.grid.size(); ++rank)
      watch_.add_remote(
          std::make_unique<RemoteRank>(run_.agent(rank), run_.hello(rank), run_.own(), progress_->slot(rank)));
    watch_.wait_for_run(runs_, "rendezvous");
  }

  void serve(const Options& options) {
    store_->set_secret(run_.wait_for_world());
    auto own = fork_own(options);
    if (own == nullptr) return;
    Agent(run_, *own, *store_, progress_->slot(run_.rank()), goodbye_).serve();
    close_pipe(goodbye_);
  }

  // Null in the rank.
  std::unique_ptr<RankProcess> fork_own(const Options& options) {
    int reports = -1;
    if (auto process = fork_rank(run_.rank(), reports)) {
      close(goodbye_.read_end);
      goodbye_.read_end = -1;
      return process;
    }
    run_.leave_to_parent();
    close(goodbye_.write_end);
    in_rank_.emplace(options, run_.rank(), reports, goodbye_.read_end, *store_, *progress_);
    return nullptr;
  }

  void let_go() {
    close_pipe(goodbye_);
    watch_.say_goodbye();
  }

  LaunchedRun& run_;
  std::unique_ptr<KeyStore> store_;
  std::unique_ptr<Progress> progress_;
  Pipe goodbye_;
  LaunchedWatch watch_;
  std::optional<RankSide> in_rank_;
  int runs_ = 1;  // the rendezvous is the first
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<World> start_launched_world(const Options& options, LaunchedRun& run) {
  return std::make_unique<LaunchedWorld>(options, run);
}

}  // namespace muonwalk::sim
