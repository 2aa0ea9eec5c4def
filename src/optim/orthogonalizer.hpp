#pragma once

#include <vector>

#include "src/optim/fused_matrix.hpp"
#include "src/optim/optimizer.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk {

/// What the ranks of a TP group do about one matrix: from a rank's TP slice of the update to its TP slice of the
/// orthogonal matrix. The other steps of Muon are elementwise, or about DP, so full_step and its plan are the same for
/// every orthogonalizer.
class Orthogonalizer {
 public:
  virtual ~Orthogonalizer() = default;
  /// The phase with which it begins, as a plan lists it. full_step announces it, and then takes the slice out of its
  /// bucket.
  virtual Work begins(const DistMeta& meta, const MuonSettings& settings) const = 0;
  /// From this rank's slice of the update to that of the orthogonal matrix, both of meta.shape. Announces all phases
  /// but the first. Throws UsageError, naming the parameter, on NaN or infinity.
  virtual Matrix orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                                  Matrix slice) const = 0;
  /// Lists what that does. The slice is held before and after, and the first phase is listed already.
  virtual void plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const = 0;
  /// By which shape `apply` scales which elements of the range `owned` of TP rank `tp_rank`'s slice: by that of the
  /// whole matrix, or of the piece of a fused one.
  virtual std::vector<RangeOfPiece> scaled(const DistMeta& meta, int tp_rank, Range owned,
                                           const MuonSettings& settings) const {
    return by_pieces(meta, tp_rank, owned, settings.fused);
  }
};

/// The plain one: TP gather → Newton–Schulz → TP shard (full_step.cpp). All ranks of the TP group gather the whole
/// matrix, and then each of them does the same Newton–Schulz.
class DuplicatedOrthogonalizer : public Orthogonalizer {
 public:
  Work begins(const DistMeta& meta, const MuonSettings& settings) const override;
  Matrix orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                          Matrix matrix) const override;
  void plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const override;
};

/// One for everybody: it holds nothing.
const Orthogonalizer& duplicated_orthogonalizer();

/// Whether TP cuts this matrix into slices that are smaller than the whole. Where it does not, there is nothing to
/// gather, and every orthogonalizer does what the plain one does.
inline bool cut_by_tp(const DistMeta& meta) { return meta.shape != meta.full_shape; }

/// What Newton–Schulz holds besides its input, in elements: the matrix's wide copy X and the next X; and A and B, each
/// m × m with the shorter side m. In bf16 c A is rounded, so it needs a place of its own.
Index newton_schulz_elements(Shape full, Precision precision);

}  // namespace muonwalk
