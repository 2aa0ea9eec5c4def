#pragma once

#include "src/optim/full_step.hpp"

namespace muonwalk {

namespace phases {
/// In place of the DP gather and the DP shard of a matrix: the parts of all matrices of a bucket go to the matrices'
/// workers, and come back orthogonal.
/// @{
constexpr Phase to_workers = "all-to-all to workers";
constexpr Phase to_owners = "all-to-all to owners";
/// @}
}  // namespace phases

/// Muon where each matrix has a *worker* besides the owners of its elements: a DP rank, to which they send their parts
/// of the update, and which orthogonalizes it and sends them their parts of the result. So nothing is computed twice
/// over dp, and an element travels once each way, however many ranks there are. Workers are dealt out over all matrices
/// by their work in Newton–Schulz (balanced_owners).
///
/// What travels has two bytes per element where MuonSettings::gathered says so; also on the way back, which loses
/// nothing, because there Newton–Schulz has computed in bf16. No rank sends to itself, and padding stays at home.
class AllToAllMuon : public Muon {
 public:
  /// Takes nothing yet, but has to know where matrices will lie: `layout` is the one that it is started with, and
  /// planned for. Any policy of ownership will do; who owns whole matrices, as with Ownership::matrices, has no need of
  /// it.
  AllToAllMuon(const Layout& layout, const MuonSettings& settings);

  std::string name() const override { return "Muon, all-to-all"; }
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override;

  /// The DP rank that works on a matrix: parameter number `index` of a buffer, as Bucket::parameters counts them.
  int worker(int buffer_idx, int index) const { return workers_.at(buffer_idx).at(index); }

 private:
  std::vector<std::vector<int>> workers_;  // [buffer][parameter of the buffer]
};

}  // namespace muonwalk
