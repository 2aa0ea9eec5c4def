#include <algorithm>

#include "lessons/lesson_09_full_step/try_orthogonalize_once/contract.hpp"

using namespace muonwalk;

// Matrix by matrix. Who owns no element of it has no part in it; the owner waits for all others that do.
Flat orthogonalize_once(Communicator& dp, const Layout& layout, const std::vector<int>& owners, const Flat& shard) {
  Flat result(shard.size());
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    const int owner = owners[meta.parameter], me = dp.rank();
    const Range mine = layout.local_range(meta, me);
    if (me != owner) {
      if (mine.empty()) continue;
      dp.send(&shard[mine.begin], mine.size(), owner);
      dp.recv(&result[mine.begin], mine.size(), owner);
      continue;
    }
    // Where the elements of rank r begin in the matrix.
    const auto place = [&](int r) { return layout.owned_range(meta, r).begin - meta.global_range.begin; };
    Matrix matrix(meta.shape.rows, meta.shape.cols);
    for (int r = 0; r < dp.size(); ++r) {
      const Index count = layout.owned_range(meta, r).size();
      if (count <= 0) continue;
      if (r == me)
        std::copy(&shard[mine.begin], &shard[mine.begin] + count, matrix.data() + place(me));
      else
        dp.recv(matrix.data() + place(r), count, r);
    }
    matrix = newton_schulz(matrix);
    for (int r = 0; r < dp.size(); ++r) {
      const Index count = layout.owned_range(meta, r).size();
      if (count <= 0) continue;
      if (r == me)
        std::copy(matrix.data() + place(me), matrix.data() + place(me) + count, &result[mine.begin]);
      else
        dp.send(matrix.data() + place(r), count, r);
    }
  }
  return result;
}
