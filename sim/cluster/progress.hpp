#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace muonwalk::sim {

/// What one rank is doing, written by the rank and read by the parent, in memory that both share.
struct ProgressSlot {
  enum class Stage : int { starting, connecting, running, finished };
  std::atomic<Stage> stage;
  std::atomic<bool> in_exchange;   ///< waits for other ranks
  char step[128];                  ///< the title of the step
};

/// The slots of all ranks, mapped before the fork. When a rank falls silent, the slots tell which one and in which step.
class ProgressBoard {
 public:
  explicit ProgressBoard(int ranks);
  ~ProgressBoard();
  ProgressBoard(const ProgressBoard&) = delete;
  ProgressBoard& operator=(const ProgressBoard&) = delete;

  ProgressSlot& slot(int rank) { return slots_[rank]; }
  const ProgressSlot& slot(int rank) const { return slots_[rank]; }
  int ranks() const { return ranks_; }

  void enter_step(int rank, const std::string& title);
  std::string step(int rank) const;

 private:
  int ranks_;
  ProgressSlot* slots_;
};

}  // namespace muonwalk::sim
