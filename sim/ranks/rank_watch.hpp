#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/progress.hpp"
#include "sim/ranks/watched_rank.hpp"

namespace muonwalk::sim {

/// Seconds that this process was there to see. Time in which it was stopped itself (Ctrl-Z) must not be held
/// against a rank, so the time between two looks counts for at most a second.
class AwakeClock {
 public:
  /// Seconds since the clock was made. To be called several times a second.
  double seconds();

 private:
  double looked_at_ = monotonic_seconds();
  double seconds_ = 0;
};

/// Tells for how long ranks have stood still: neither used processor time to speak of nor asked for any. A rank that
/// computes for long is left in peace, however long the others wait for it, and so is one that gets no processor
/// because the machine is busy with something else, or that somebody has stopped: when it goes on, all begins anew.
class StandstillWatch {
 public:
  /// Seconds for which all of the ranks have stood still, at `now` on an AwakeClock.
  double seconds(const WatchedRanks& ranks, double now);

 private:
  bool began_ = false;
  double looked_at_ = 0;
  double used_before_ = 0;
  double still_ = 0;
};

/// Tells which rank does nothing but compute. It may be doing honest work, so what counts is the processor time that it
/// has used, per thread, since it last gave a sign: a rank that gets no processor does not get older by that.
class ComputeWatch {
 public:
  /// `progress` is where the ranks leave their signs; it must outlive the watch.
  ComputeWatch(const Progress& progress, int threads_per_rank);
  /// A rank that has used more than `seconds` of processor time per thread since its last sign, at `now` on an
  /// AwakeClock; −1 when there is none.
  int rank_beyond(double seconds, const WatchedRanks& ranks, double now);

 private:
  const Progress* progress_;
  int threads_;
  double looked_at_ = -1;
  std::vector<std::uint64_t> signs_;  // [rank]
  std::vector<double> cpu_seconds_;   // [rank]: used when the number of signs last changed; −1: never looked
};

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
