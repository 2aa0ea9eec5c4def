#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/optim/optimizer.hpp"
#include "tests/optim/random_case.hpp"

namespace muonwalk::test {

/// A phase that began, or a call that was made; with what the rank held then.
struct Seen {
  std::string phase;            ///< empty for a call
  int parameter = -1;           ///< of the phase
  Call call;                    ///< where it is one
  std::int64_t held = 0;        ///< elements, when the phase began; not looked at for a call
  std::int64_t held_bytes = 0;  ///< the same in bytes
};

/// What one rank did in a step, as its observers were told and its meter counted.
struct RecordedStep {
  std::vector<Seen> seen;           ///< in order
  Ledger counted;                   ///< of this step alone
  std::int64_t held_before = 0;     ///< weights, state and gradients
  std::int64_t held_after = 0;      ///< the same, if the step gave back what it took
  std::int64_t peak = 0;            ///< the most in between
  std::int64_t bytes_before = 0;    ///< held_before in bytes
  std::int64_t peak_bytes = 0;      ///< the most in between, in bytes
  std::vector<NamedMatrix> slices;  ///< the weights after the step
  Index kept = 0;                   ///< what the optimizer said that it keeps
};

struct TestRank;

/// What the rank hands an optimizer in a step of the case: leaf r of the gradients on DP rank r, in whole buckets, or
/// its shards of their sum, which it takes first, where the optimizer takes_summed_gradients.
Buckets handed_gradients(const Case& c, const Layout& layout, TestRank& rank, int step, const Optimizer& optimizer);

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>()>;

/// Runs the case on fibers with an optimizer of its own for each rank, with handed_gradients. Result [rank][step].
std::vector<std::vector<RecordedStep>> record_steps(const Case& c, const MakeOptimizer& make);

/// Where what was recorded is not what the plan lists, one by one: the first difference in a sentence; else empty.
/// Phases and calls in their order, elements and bytes held as each phase begins, both peaks, the ledger, and that
/// nothing is left over.
std::string first_difference(const Plan& plan, const RecordedStep& recorded);

/// What the optimizer of each rank has after the steps of the case, [rank]. With a `pause`, the ranks end after that
/// many steps, and new ones with optimizers of their own, resume from what those have saved.
std::vector<SavedState> final_states(const Case& c, const MakeOptimizer& make, int pause = 0);

/// Where two states differ in anything, to the last bit; else empty.
std::string first_difference(const SavedState& a, const SavedState& b);

/// The weights of a reference after each step of the case, [step]; as many leaves as DP ranks.
std::vector<std::vector<NamedMatrix>> reference_steps(const Case& c, const Optimizer& optimizer);

/// Where a rank's weights differ from the reference's: the parameter's name; else empty.
std::string first_difference(const Case& c, const Place& place, const std::vector<NamedMatrix>& slices,
                             const std::vector<NamedMatrix>& whole);

}  // namespace muonwalk::test
