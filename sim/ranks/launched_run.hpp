#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/launch/frames.hpp"
#include "sim/ranks/hello.hpp"
#include "sim/ranks/options.hpp"

namespace muonwalk::sim {

/// The processes that a launcher, or somebody by hand, has started for one run, as one of them sees it; there is one
/// such object in a program, and it lasts from the first world to the end of the program, since a program may have
/// several worlds, one after the other.
///
/// The process that was launched as rank 0 is the *parent*: it prints and checks, and it is connected with all
/// others. Those are *agents*: each looks after one rank and tells the parent of it. No rank is one of these
/// processes; each of them forks its rank when a world begins.
class LaunchedRun {
 public:
  /// Meets the others: the parent waits for all agents, an agent looks for the parent. Throws UsageError in the
  /// parent when one of them can't be in the run, and RunError when somebody has not come within --timeout.
  LaunchedRun(const Launch& launch, const Hello& own, double timeout_seconds, Products products);
  ~LaunchedRun();
  LaunchedRun(const LaunchedRun&) = delete;
  LaunchedRun& operator=(const LaunchedRun&) = delete;

  /// In the parent, when the program is about to end with this code, which is not 0: all agents end with the same, so
  /// it does not matter which process a launcher hears of first. In other processes it does nothing.
  void ends_with(int code);

  /// True in an agent.
  bool is_agent() const { return own_.rank != 0; }
  /// Of this process.
  int rank() const { return own_.rank; }
  /// On how many hosts the run is; known to the parent.
  int hosts() const { return hosts_; }

  /// In the parent: what rank `rank`, which is not 0, says of itself, and the connection with its agent.
  /// @{
  const Hello& hello(int rank) const { return hellos_[static_cast<std::size_t>(rank)]; }
  FramedConnection& agent(int rank) { return *agents_[static_cast<std::size_t>(rank)]; }
  /// @}
  /// What this process says of itself.
  const Hello& own() const { return own_; }
  /// In an agent: the connection with the parent.
  FramedConnection& parent() { return *agents_[0]; }

  /// In the parent: a new world begins; tells the agents. Returns the secret that its ranks know each other by.
  Secret begin_world();
  /// In an agent: waits until one does. Ends the program where none will.
  Secret wait_for_world();
  /// In the parent: tells the agents that a world is over: when it has come to its end they go on with the program,
  /// else they end.
  void end_world(bool well);

  /// In the parent: tells the agents that what was asked for is refused, and why.
  void refuse(const std::string& why) { tell_end(2, why); }

  /// In a rank, which was forked from one of these processes: closes all connections.
  void leave_to_parent();

  /// True when the launcher that has started this process is gone, and with it whoever would end this process.
  bool launcher_is_gone() const;

  /// In an agent: ends the program, with a sentence where there is one, after the parent. Who was started by hand, in a
  /// terminal of its own, else says what the parent says of it. The rank must have been ended.
  [[noreturn]] void end_agent(int code, const std::string& sentence);
  /// In an agent: does so when the parent has said so, is lost, or the launcher is gone; `rank_ends` ends the rank.
  template <class EndRank>
  void require_parent(const EndRank& end_rank) {
    if (!parent().ended() && !launcher_is_gone()) return;
    end_rank();
    end_agent(3, lost_text());
  }

 private:
  void meet_agents(const Launch& launch, double timeout_seconds, Products products);
  void take_in(std::unique_ptr<FramedConnection> connection, const Hello& hello, Products products);
  void tell_end(int code, const std::string& why = "");
  std::string lost_text() const;

  Hello own_;
  std::string launcher_;  // empty when started by hand
  pid_t parent_;          // when this process began
  pid_t self_;
  Secret secret_;
  std::vector<Hello> hellos_;                              // [rank]
  std::vector<std::unique_ptr<FramedConnection>> agents_;  // [rank]; in an agent, [0] is the parent
  int hosts_ = 1;
};

/// The run of this program, once its processes have met (meet_launched); null before, and where no launcher has started
/// them.
LaunchedRun* launched_run();

}  // namespace muonwalk::sim
