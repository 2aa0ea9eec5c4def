#pragma once

#include <cstdint>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk::sim {

/// What one rank does in a step, or in several, in numbers that a plan says and a rank can count.
struct StepCounts {
  std::int64_t bytes = 0;     ///< sent
  std::int64_t messages = 0;  ///< likewise
  Index calls = 0;            ///< of Newton–Schulz
  Index kept = 0;             ///< elements kept from step to step, besides weights
  Index transient = 0;        ///< the most elements held at a time, besides those held between two steps

  /// Another step: what is kept is that of the last one, and of what is transient the larger counts.
  StepCounts& operator+=(const StepCounts& next);
  /// They as a matrix of one row, which a rank can hand over and have compared.
  Matrix row() const;
};

/// What the plans of these steps say of it.
StepCounts counts_of(const std::vector<Plan>& plans);

/// Counts the same on the rank itself, in one step. It begins where it is made.
class StepCounter {
 public:
  /// Both are the rank's own, and must outlive the counter.
  StepCounter(const Ledger& ledger, MemoryMeter& meter);
  /// A phase begins.
  void begin(Phase phase);
  /// The step is over.
  StepCounts end(const Optimizer& optimizer);

 private:
  const Ledger& ledger_;
  MemoryMeter& meter_;
  Traffic sent_before_;
  Index held_before_;
  StepCounts counts_;
};

}  // namespace muonwalk::sim
