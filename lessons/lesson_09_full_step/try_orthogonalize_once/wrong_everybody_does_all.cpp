// fails: right bits, but too many bytes
#include <algorithm>

#include "lessons/lesson_09_full_step/try_orthogonalize_once/contract.hpp"

using namespace muonwalk;

Flat orthogonalize_once(Communicator& dp, const Layout& layout, const std::vector<int>& owners, const Flat& shard) {
  const Flat bucket = dp.all_gather(shard);
  Flat result(shard.size());
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const Range mine = layout.local_range(meta, dp.rank());
    if (mine.empty()) continue;
    const auto first = bucket.begin() + meta.global_range.begin;
    const Matrix matrix =
        newton_schulz(Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.shape.size())));
    const Index place = layout.owned_range(meta, dp.rank()).begin - meta.global_range.begin;
    std::copy(matrix.data() + place, matrix.data() + place + mine.size(), &result[mine.begin]);
  }
  return result;
}
