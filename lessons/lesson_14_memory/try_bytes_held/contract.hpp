// # What a rank keeps
//
// Given the layout, say how many bytes a DP rank keeps from step to step when it trains in mixed precision with ZeRO-1.
//
//     layout      its buffers, one per parameter group; bucket k of a buffer is `buckets[k].range` of it, and of that
//                 DP rank r owns what is from `buckets[k].cuts[r]` to `cuts[r + 1]`
//     dp_rank     which rank
//     muon_group  the number of the parameter group (`Buffer::group`) that Muon steps; AdamW steps all others
//     returns     the bytes of weights in bfloat16, of gradients and of master weights in float32, and of the
//                 optimizer's state in float32
//
// Padding is kept like everything else. Nothing is sent, and no matrix is held.
#pragma once

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// What a rank keeps, in bytes.
struct HeldBytes {
  Index weights = 0;    ///< bfloat16
  Index gradients = 0;  ///< float32
  Index masters = 0;    ///< float32
  Index state = 0;      ///< float32: Muon's momentum, and both of AdamW's moments
};

using BytesHeld = HeldBytes(const Layout& layout, int dp_rank, int muon_group);

}  // namespace muonwalk
