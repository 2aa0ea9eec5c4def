#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/reports.hpp"
#include "src/comm/communicator.hpp"
#include "src/layout/parameter.hpp"
#include "src/numerics/memory_meter.hpp"

namespace muonwalk::sim {

class Progress;
class RankGroups;

/// One rank, as a step sees it: what it knows of itself, its groups, and a way to say what it holds. Steps run on all
/// ranks at once, and what they show is printed by the parent in rank order when the step has ended.
class Rank : public RankInfo {
 public:
  /// `groups` must outlive the rank.
  Rank(const RankInfo& info, RankGroups& groups);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// This rank's number in the world.
  int rank() const { return place.rank; }

  /// The groups this rank belongs to: those of the grid, and any other by its name, which has to be in
  /// LessonInfo::groups. Throws UsageError for a group that the run does not have, or that this rank is not in.
  /// @{
  Communicator& dp();
  Communicator& tp();
  Communicator& pp();
  Communicator& group(const std::string& name);
  /// @}

  /// The number of the GPU that this rank has, with `--transport nccl`; nothing where it has none.
  std::optional<int> gpu() const;

  /// Prints a line: name, shape, bytes, and, with --verbose 2, the values and their digest. What it returns is good
  /// until the end of the step.
  Shown& show(const std::string& name, const Matrix& matrix);
  /// Prints a line for a flat array.
  Shown& show(const std::string& name, const Flat& values);
  /// Prints a line for something that has a shape but no values to print.
  Shown& show(const std::string& name, Shape shape);
  /// Prints a line for a flat array of `count` elements, without its values.
  Shown& show(const std::string& name, Index count);
  /// Prints a line of words.
  void say(const std::string& line);

  /// Names what the rank does from here on, until the next call or the end of the step; the time that each phase takes
  /// is printed at the end of the run, on standard error.
  void phase(const std::string& name);

  /// Lets this time pass for the rank where time is virtual: with ranks as fibers and a slow link, computing takes none
  /// by itself. Everywhere else a clock has seen it pass, and nothing is done.
  void let_pass(std::int64_t ns);

  /// At the beginning of a step, by every rank: rank 0 looks whether somebody has asked the run to stop, and decides
  /// whether this step is the last one (LessonCore::stop_when_asked). After it the step needs a call that no rank can
  /// leave before rank 0 has taken part, such as an all-reduce over all ranks; a rank that ends the step before rank 0
  /// has decided fails. Sends nothing, and without a lesson that stops when asked it does nothing.
  void decide_whether_to_stop();

  /// True while this step is recorded: what is shown of a quiet step only to be recorded need not be made otherwise.
  bool recorded() const;

  /// What this rank has sent and received since the start.
  Ledger& ledger();
  /// What this rank's matrices and flat buffers hold.
  MemoryMeter& memory();

 private:
  friend class RankSession;
  friend class LessonCore;
  Report& add(Report report);
  RankGroups& groups();
  void start_recording();
  void require_decision() const;
  struct State;
  std::unique_ptr<State> state_;
};

/// What a step does on one rank.
using RankBody = std::function<void(Rank&)>;

/// Runs steps on one rank, be it a process or a fiber, and keeps what the rank said.
class RankSession {
 public:
  /// The session of rank `rank` with its connected groups. `progress` must outlive it.
  RankSession(const Options& options, int rank, std::unique_ptr<RankGroups> groups, Progress& progress);
  ~RankSession();

  /// Runs the body as step number `step` (counted from 1; 0 for a hand-over) and returns its records. Exceptions pass
  /// through. A fault that was asked for happens here, before the body.
  std::vector<Report> run(int step, const std::string& title, const RankBody& body);

 private:
  Options options_;
  std::unique_ptr<RankGroups> groups_;
  Progress* progress_;
  Rank rank_;
};

}  // namespace muonwalk::sim
