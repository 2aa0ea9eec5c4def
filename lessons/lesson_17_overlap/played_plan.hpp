#pragma once

#include <vector>

#include "lessons/lesson_17_overlap/overlap.hpp"
#include "sim/transport/slow_link.hpp"
#include "src/numerics/interval_set.hpp"

namespace muonwalk::sim {

/// What a plan is played on: one link and one processor for each rank.
struct PlayedMachine {
  LinkSpeed link;                   ///< The link to the other ranks.
  double gigaflops_per_second = 0;  ///< The processor's rate.
};

/// A stretch of the played time, of one bucket (counted from 0).
struct PlayedBar {
  int bucket = 0;    ///< whose bytes travel, or whose matrices are worked on
  Interval stretch;  ///< Time 0 is the beginning of the first gather.
};

/// What became of one rank's plan: the gathers and the work on the matrices, from the first gather's post to the last
/// matrix. What comes before and behind is the same in every schedule, and is left out.
struct PlayedPlan {
  std::vector<PlayedBar> link;       ///< while the bytes of a bucket come in
  std::vector<PlayedBar> processor;  ///< while its matrices are worked on
  std::vector<Interval> under_way;   ///< each message to the rank, from its post until the wait for it has returned
  std::int64_t span_ns = 0;          ///< all of it
  std::int64_t computing_ns = 0;     ///< FLOPs over the rate
  std::int64_t waiting_ns = 0;       ///< the rest of the span

  /// The times of all messages, added up: more than has passed where several are under way.
  std::int64_t under_way_ns() const;
  /// How much of the time in which messages were under way was also spent with computing, from 0 to 1.
  double hidden() const;
};

/// Plays the plan of a rank on a machine: FLOPs take their time on the processor, messages theirs on the link, one
/// after the other in each direction (LinkDirection, by which over_slow_link slows the real ones), and a wait ends when
/// its message has come. Nothing else takes time, and nobody is late. Posted messages are matched with their waits as
/// PostedGather makes them: those of the oldest bucket first, what comes in before what goes out. `layout` is the one
/// that was planned for.
PlayedPlan play(const Plan& plan, const Layout& layout, const PlayedMachine& machine);

/// How long the plan's rank works on the matrices of a bucket of the layout's first buffer, once that is whole.
std::int64_t work_ns(const Plan& plan, const Layout& layout, int bucket, const PlayedMachine& machine);

/// Plays the plans of several ranks, and returns that of the rank that is done last; of equals, the last.
PlayedPlan play_slowest(const std::vector<Plan>& plans, const Layout& layout, const PlayedMachine& machine);

}  // namespace muonwalk::sim
