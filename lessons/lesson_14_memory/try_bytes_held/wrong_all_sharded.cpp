// fails: sharded over the ranks
#include "lessons/lesson_14_memory/try_bytes_held/contract.hpp"

using namespace muonwalk;

HeldBytes bytes_held(const Layout& layout, int dp_rank, int muon_group) {
  HeldBytes held;
  for (const Buffer& buffer : layout.buffers)
    for (const Bucket& bucket : buffer.buckets) {
      const Index own = bucket.cuts[dp_rank + 1] - bucket.cuts[dp_rank];
      held.weights += 2 * own;
      held.gradients += 4 * own;
      held.masters += 4 * own;
      held.state += (buffer.group == muon_group ? 4 : 8) * own;
    }
  return held;
}
