// fails: without the padding
#include "lessons/lesson_14_memory/try_bytes_held/contract.hpp"

using namespace muonwalk;

HeldBytes bytes_held(const Layout& layout, int dp_rank, int muon_group) {
  HeldBytes held;
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters) {
      const Index whole = meta.shape.size(), own = layout.owned_range(meta, dp_rank).size();
      held.weights += 2 * whole;
      held.gradients += 4 * whole;
      held.masters += 4 * own;
      held.state += (buffer.group == muon_group ? 4 : 8) * own;
    }
  return held;
}
