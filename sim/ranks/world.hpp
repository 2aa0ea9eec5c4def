#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/rank.hpp"
#include "sim/ranks/reports.hpp"

namespace muonwalk::sim {

/// The ranks of one run. There are two kinds of world; a lesson can't tell them apart.
///
/// Processes: the constructor forks a process for each rank, and from there on the parent and all ranks go through the
/// same program. In a rank, `step` runs the body on that one rank; in the parent it waits for the ranks and returns
/// what they said. The parent is not a rank. It forks before it has a thread or a socket of its own.
///
/// Fibers: `step` runs the body on all ranks, which take turns on the calling thread until all have returned.
class World {
 public:
  virtual ~World() = default;

  /// True in the parent, which prints and checks; false in a process that is a rank.
  virtual bool is_parent() const = 0;

  /// Runs a step on the ranks of this process. Where is_parent() holds, returns every rank's records in rank order.
  /// Throws RunError that names the rank, the step and the cause when a rank fails; no rank is left by then. UsageError
  /// when a rank refused its input.
  StepReports step(const std::string& title, const RankBody& body) { return run(title, body, ++steps_); }

  /// Runs what is not a step of the lesson, such as handing over results: it has no number, and no fault that
  /// was asked for happens in it.
  StepReports hand_over(const std::string& title, const RankBody& body) { return run(title, body, 0); }

  /// In the parent, when nothing more is to be done: lets the ranks go. Throws RunError when one of them
  /// went on to a step that the parent never came to, or does not end.
  virtual void finish() {}

  /// The number of the last step.
  int steps() const { return steps_; }

 protected:
  /// Does what `step` (numbers count from 1) and `hand_over` (0) promise, in this kind of world.
  virtual StepReports run(const std::string& title, const RankBody& body, int step) = 0;

 private:
  int steps_ = 0;
};

/// Starts the ranks and connects their groups. Of a launched run, each process starts its rank, the parent connects
/// with all others, and in an agent it returns at their end.
std::unique_ptr<World> start_world(const Options& options);
/// Starts ranks that are processes, whatever Options::world says.
std::unique_ptr<World> start_process_world(const Options& options);

/// Meets the other processes of Options::launch (launched_run.hpp), at the first call. Returns on how many hosts the
/// ranks are, as far as the parent knows; 1 where no launcher has started them. Throws what LaunchedRun throws.
int meet_launched(const Options& options, const std::string& program);
/// In the parent: the other processes hear that what was asked for is refused, or that the program ends with this code.
/// @{
void refuse_launched(const std::string& why);
void end_launched(int code);
/// @}

}  // namespace muonwalk::sim
