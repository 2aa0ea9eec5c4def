#pragma once

#include "src/optim/full_step.hpp"
#include "src/optim/strategies/tp_cuts.hpp"

namespace muonwalk {

/// Muon whose TP ranks gather no slice. Each iterates on its own: X = (X₁ … X_T) lies on T ranks, with the side that TP
/// does not cut as its rows, so that A = X Xᵀ is the sum of all X_t X_tᵀ. That sum is all that travels in a step of
/// Newton–Schulz, s × s elements where s is the side that is not cut, whichever is the shorter one; and before the
/// first step, the sum of squares for the norm. B = b A + (c A) A is computed by every rank, and a X_t + B X_t is its
/// own. Matrices that TP does not cut are orthogonalized by every rank of the TP group, as Muon does it; so with one TP
/// rank its bits are Muon's.
///
/// Both sums are balanced trees over TP ranks, that of squares in double precision, that of A in float32. In bf16 each
/// rank's part is rounded and travels as a bfloat16, and the sum is rounded once. So the bits depend on T: the
/// reference adds the same pieces in the same trees.
class DistributedGram : public Muon {
 public:
  /// For the layout whose cuts these are. Throws UsageError where the settings have fused matrices: their pieces would
  /// have an A each.
  DistributedGram(const MuonSettings& settings, TpCuts cuts);

  std::string name() const override { return "Muon, distributed Gram"; }
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override;

 protected:
  const Orthogonalizer& orthogonalizer() const override;

 private:
  TpCuts cuts_;
};

}  // namespace muonwalk
