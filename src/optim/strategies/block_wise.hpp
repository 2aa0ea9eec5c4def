#pragma once

#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/optim/strategies/tp_cuts.hpp"

namespace muonwalk {

/// Muon whose TP ranks orthogonalize their own slices, each as a matrix of its own, and send nothing for it; but in
/// every `period`-th step, beginning with the first, they gather the whole matrix as Muon does. Slices that are
/// orthogonal do not make an orthogonal matrix: this is another optimizer, and its reference is one process that steps
/// the same blocks. A block is scaled by its own shape, and the whole matrix in a full step by the whole shape, as
/// Megatron-LM does both (megatron/core/optimizer/emerging_optimizers.py, TensorParallelMuon: with tp_mode "blockwise"
/// it leaves out the size of TP, by which it multiplies the cut side for the scale in the other modes). Full steps from
/// time to time are those of MuonBP (Khaled et al., 2025, arXiv 2510.16981), which has two learning rates, one for each
/// kind of step; here they are one.
class BlockWise : public Muon {
 public:
  /// For the layout whose cuts these are, as it is after `steps` steps; started, it goes on counting from there. With a
  /// period of 1 it is Muon. Throws UsageError where the period is below 1 or the settings have fused matrices: TP cuts
  /// through their pieces.
  BlockWise(const MuonSettings& settings, TpCuts cuts, int period = kBlockWisePeriod, int steps = 0);

  std::string name() const override { return "Muon, block-wise"; }
  /// Begins to count at the steps that it was made with.
  void start(const Layout& layout, const Place& place, Buckets weights) override;
  /// It goes on counting where this optimizer is.
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override;

 protected:
  const Orthogonalizer& orthogonalizer() const override;

 private:
  TpCuts cuts_;
  int period_;
  int first_step_;
};

}  // namespace muonwalk
