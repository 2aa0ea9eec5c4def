#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace muonwalk::sim
