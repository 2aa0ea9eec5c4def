#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cluster/options.hpp"
#include "sim/cluster/rank_session.hpp"

namespace muonwalk::sim {

/// The ranks of one run. There are two kinds of world; a lesson can't tell them apart.
///
/// Processes: the constructor forks a process for each rank, and from there on the parent and all ranks go through the
/// same program. In a rank, `step` runs the body on that one rank; in the parent it waits for the ranks and returns
/// what they said. The parent is no rank. It forks before it has a thread or a socket of its own.
///
/// Threads: `step` runs the body on all ranks at once, a thread each, and the threads end before it returns.
class World {
 public:
  virtual ~World() = default;

  /// True in the process that prints and checks; false in a process that is a rank.
  virtual bool reporting() const = 0;

  /// Runs a step on the ranks of this process. Where reporting() holds, returns every rank's records in rank order.
  /// Throws RunError that names the rank, the step and the cause when a rank fails; no rank is left by then. UsageError
  /// when a rank refused its input.
  std::vector<std::vector<Record>> step(const std::string& title, const RankBody& body) {
    return run(title, body, ++steps_);
  }

  /// The same for what is no step of the lesson, such as handing over results: it has no number, and no fault that was
  /// asked for happens in it.
  std::vector<std::vector<Record>> errand(const std::string& title, const RankBody& body) {
    return run(title, body, 0);
  }

  /// The number of the last step.
  int steps() const { return steps_; }

 protected:
  /// Does what `step` (numbers from 1 on) and `errand` (0) promise, in this kind of world.
  virtual std::vector<std::vector<Record>> run(const std::string& title, const RankBody& body, int step) = 0;

 private:
  int steps_ = 0;
};

/// Starts the ranks and connects their groups.
std::unique_ptr<World> start_world(const Options& options);

/// The same for one kind of world, whatever Options::world says.
/// @{
std::unique_ptr<World> start_process_world(const Options& options);
std::unique_ptr<World> start_thread_world(const Options& options);
/// @}

}  // namespace muonwalk::sim
