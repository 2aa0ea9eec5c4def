#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/progress.hpp"
#include "sim/ranks/watched_rank.hpp"

namespace muonwalk::sim {

/// The parent's waiting for ranks that are processes: until all have finished a run of theirs, or until one can't any
/// more. Then it ends all of them and says which one, where, and why. A run is a step, a hand-over, or the rendezvous,
/// which is the first; they count from 1.
class RankWatch {
 public:
  /// Ranks are handed over one by one (add). `progress` is where they leave their signs; it must outlive the watch.
  RankWatch(const Options& options, const Progress& progress);
  virtual ~RankWatch() = default;
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// The next rank, in rank order.
  void add(std::unique_ptr<WatchedRank> rank) { ranks_.push_back(std::move(rank)); }

  /// Returns when every rank has finished run number `run`, with what they have told in it. Throws what made one fail,
  /// or a RunError with the cause; no rank is left by then.
  StepReports wait_for_run(int run, const std::string& title);

  /// After `runs` runs, when the ranks have been told that nobody needs them: returns when all have left. Throws
  /// RunError when one has gone on to a step that this program never came to, or does not end.
  void require_ended(int runs);

  /// Waits a while for ranks that leave by themselves, and ends what is still there.
  void let_leave();

  /// Ends every rank.
  void end_ranks();

  /// In a process that was forked later: forgets all ranks, and leaves their processes alone.
  void leave_to_parent();

 protected:
  /// Called several times a second while ranks are waited for, when their news has been taken.
  virtual void news_taken() {}

  /// All ranks, in rank order.
  WatchedRanks& ranks() { return ranks_; }
  /// Ends every rank and throws a RunError that says why.
  [[noreturn]] void give_up(const std::string& cause);

 private:
  void wait_for_news();
  void check_stopped(int run, double now);
  void check_heard_of(int run, double now);
  std::string name(std::size_t rank) const;
  void give_up_if_hopeless(const std::string& title);
  std::string where(std::size_t rank) const;
  std::string cause_stopped(std::size_t rank) const;
  std::string cause_unheard_of(std::size_t rank) const;
  bool left_properly(std::size_t rank) const;
  std::string cause_of_loss();
  std::string cause_of_no_rendezvous() const;
  std::string cause_of_standstill(int run, const std::string& title) const;

  Options options_;
  const Progress* progress_;
  WatchedRanks ranks_;
  std::vector<double> stopped_since_;  // [rank]: on the clock of wait_for_run; −1: it is not stopped
  std::vector<double> heard_of_at_;    // [rank]: on the same clock
  double now_ = 0;                     // the same
};

}  // namespace muonwalk::sim
