#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/layout/buffer.hpp"
#include "src/numerics/matrix.hpp"
#include "src/optim/optimizer.hpp"
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

/// What a plan says of it: the calls of each phase. Throws std::logic_error for a call in a phase without a purpose.
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

/// Newton–Schulz takes one step in lesson 13, in place of five: nobody sends a byte less for it, and the published
/// sizes run in a minute.
constexpr int kNewtonSchulzSteps = 1;

/// One of those that are compared: an optimizer, and, of Muon, the type in which it gathers.
struct Contender {
  std::string name;                                                                ///< "Muon, gathers in bf16"
  std::function<std::unique_ptr<Optimizer>(int threads, Products products)> make;  ///< one for each rank and reference
};

/// Where they stand in the list.
enum Who { all_reduce, zero1, muon_bf16, muon_fp32 };

/// All four.
const std::vector<Contender>& contenders();

/// Which of the moves that every optimizer makes have elements of 2 bytes: none; that of weights, of which each rank
/// keeps float32 masters for its shard (with_master_weights); or that of gradients as well.
enum class Halved { nothing, weights, weights_and_gradients };

/// What the rank at `place` sends in a step of a contender, by plan.
SentBytes planned(const Contender& contender, const Layout& layout, const Place& place,
                  Halved halved = Halved::nothing);

/// The matrices of the published run in one bucket without padding.
Layout published_layout(const Grid& grid, Ownership ownership = Ownership::buckets);

/// What rank 0 of the published run sends with a contender, in one bucket and without padding.
SentBytes published(Who who, const Grid& grid, Halved halved = Halved::nothing);

}  // namespace muonwalk::sim
