#include "lessons/lesson_13_byte_ledger/try_bytes_of_a_step/contract.hpp"

using namespace muonwalk;

Index bytes_of_a_step(const Layout& layout, const Place& place, int gathered) {
  const Index others_in_dp = layout.grid.dp() - 1, others_in_tp = layout.grid.tp() - 1;
  Index bytes = 0;
  for (int b = 0; b < static_cast<int>(layout.buffers.size()); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (int k = 0; k < static_cast<int>(buffer.buckets.size()); ++k) {
      const Index own = layout.dp_counts(b, k)[place.dp];
      bytes += 4 * (buffer.buckets[k].range.size() - own);  // of my gradients, what others own goes to them
      bytes += gathered * own * others_in_dp;               // my shard of the update goes to all others
      bytes += 4 * own * others_in_dp;                      // and so do the weights that I have changed
    }
    for (const DistMeta& meta : buffer.parameters)
      if (meta.tp_split_dim != SplitDim::none && !layout.owned_range(meta, place.dp).empty())
        bytes += gathered * meta.shape.size() * others_in_tp;  // my TP slice goes to the rest of my TP group
  }
  return bytes;
}
