#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "src/comm/call.hpp"

namespace muonwalk::sim {

/// What one rank is doing, written by the rank and read by the parent, in memory that both share.
struct ProgressSlot {
  /// From the fork on: not yet in its rendezvous, in it, in its steps, ended.
  enum class Stage : int { starting, connecting, running, finished };
  std::atomic<Stage> stage;              ///< the rank's stage
  static constexpr int kNobody = -1;     ///< it waits for nobody
  static constexpr int kEverybody = -2;  ///< it waits for its whole group, in a call that the backend makes
  std::atomic<int> waits_for;            ///< the rank of the world that it waits for, or one of these
  std::atomic<CollectiveKind> waits_in;  ///< the call in which it waits
  /// How often it began a step, a phase or an exchange, or ended one: as long as it grows, the rank gets somewhere.
  std::atomic<std::uint64_t> signs;
  char step[128];  ///< the title of the step
};

/// The slots of all ranks, mapped before the fork. When a rank falls silent, they tell which one and in which step.
class Progress {
 public:
  /// Maps a slot for each rank; all of them are at Stage::starting.
  explicit Progress(int ranks);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The slot of a rank, 0 ≤ rank < ranks().
  /// @{
  ProgressSlot& slot(int rank) { return slots_[rank]; }
  const ProgressSlot& slot(int rank) const { return slots_[rank]; }
  /// @}
  /// How many slots there are.
  int ranks() const { return ranks_; }

  /// The rank begins a step of this title; what is longer than a slot has room for is cut.
  void enter_step(int rank, const std::string& title);
  /// The title of the step that the rank is in.
  std::string step(int rank) const { return slots_[rank].step; }
  /// Ranks that wait for each other, each for the next and the last for the first, as a sentence: "rank 0 waits in send
  /// for rank 1, which waits in send for rank 0", and what to do about it. Empty when there is no such cycle; a send
  /// and a recv that wait for each other are none. To be asked when nothing moves any more. With `hopeless`, only of
  /// ranks that send to each other, or of which some are in a collective and some in a send or recv.
  std::string cycle(bool hopeless = false) const;
  /// Who waits in what for whom, where nobody can go on: the cycle if there is one, and else all ranks that wait and
  /// those that `has_left` says have left the step: "rank 0 waits in recv for rank 2; rank 2 has left the step".
  std::string who_waits(const std::vector<bool>& has_left) const;

 private:
  int ranks_;
  ProgressSlot* slots_;
};

}  // namespace muonwalk::sim
