#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/numerics/matrix.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// What a rank sends in one step of an optimizer, in bytes, by what it is for.
struct SentBytes {
  std::int64_t gradients = 0;  ///< The rank's own gradients, so that somebody has the sum of all ranks'.
  std::int64_t updates = 0;    ///< The DP shard of the update, so that Newton–Schulz has whole TP slices.
  std::int64_t slices = 0;     ///< The TP slices of the update, so that Newton–Schulz has whole matrices.
  std::int64_t weights = 0;    ///< the new weights that it computed, for those that did not

  /// What Newton–Schulz alone asks for.
  std::int64_t gathers() const { return updates + slices; }
  /// All four.
  std::int64_t total() const { return gradients + gathers() + weights; }
  /// All four are equal.
  friend bool operator==(const SentBytes& a, const SentBytes& b) {
    return a.gradients == b.gradients && a.updates == b.updates && a.slices == b.slices && a.weights == b.weights;
  }
};

/// What a plan says of it: the calls of each phase. Throws std::logic_error for a call in a phase that has no purpose
/// here.
SentBytes sent_bytes(const Plan& plan);

/// Counts the same while a rank takes its step: it is told of each phase as it begins, and looks at what the rank's
/// ledger says then. It begins where it is made.
class SentCounter {
 public:
  /// `ledger` is the rank's own, and must outlive the counter.
  explicit SentCounter(const Ledger& ledger);
  /// A phase begins: what is sent from here on is for it. Throws std::logic_error where something was sent before the
  /// first phase, or in one without a purpose.
  void begin(Phase phase);
  /// What was sent since the counter was made. The step has ended.
  SentBytes end();

 private:
  const Ledger& ledger_;
  std::int64_t seen_;
  Phase phase_;
  SentBytes sent_;
};

/// Several of them as a matrix that the parent can collect and compare, a row each. A float holds a count
/// exactly up to 2^24, so each number takes two columns: its thousands, and the rest. Good up to 16 GB.
/// @{
Matrix matrix_of(const std::vector<SentBytes>& sent);
std::vector<SentBytes> sent_from(const Matrix& matrix);
/// @}

}  // namespace muonwalk::sim
