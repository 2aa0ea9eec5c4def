#include <algorithm>

#include "src/optim/full_step.hpp"

namespace muonwalk {
namespace {

/// What orthogonalize holds at once, its input included: the matrix, its wide copy X and the next X, each rows · cols;
/// and A and B, each m × m with the shorter side m. In bf16 c A is rounded, so it needs a place of its own. No other
/// moment of a matrix's journey holds more than three times its elements.
Index newton_schulz_elements(Shape full, Precision precision) {
  const Index m = std::min(full.rows, full.cols);
  return 3 * full.size() + (precision == Precision::bf16 ? 3 : 2) * m * m;
}

}  // namespace

Index predict_peak_elements(const Layout& layout, const Place& place, const MuonSettings& settings) {
  Index handed = 0;  // held from begin to end
  Index worst = 0;   // on top of it, at the worst moment
  for (const Buffer& buffer : layout.buffers) {
    for (const Bucket& bucket : buffer.buckets) {
      const Index whole = bucket.range.size();
      const Index shard = whole / layout.grid.dp();
      handed += whole + whole + shard;  // weights, gradients, momentum

      // The DP gather holds the shard and the bucket, in bf16 the bucket's 2-byte elements too.
      worst = std::max(worst, shard + (settings.precision == Precision::bf16 ? 2 : 1) * whole);
      // Then the bucket stays while its matrices, one at a time, are orthogonalized.
      for (int index : bucket.parameters) {
        const DistMeta& meta = buffer.parameters[index];
        if (layout.owned_range(meta, place.dp).empty()) continue;
        worst = std::max(worst, whole + newton_schulz_elements(meta.full_shape, settings.precision));
      }
    }
  }
  return handed + worst;
}

}  // namespace muonwalk
