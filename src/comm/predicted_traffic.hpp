#pragma once

#include <utility>
#include <vector>

#include "src/comm/ledger.hpp"

namespace muonwalk {

/// What one call makes rank `rank` of a group of `size` send and receive, by formula. All collectives here talk
/// directly: a rank sends to every other rank what that one needs, once. n = size; a message of zero bytes is a
/// message. With one rank nothing is sent.

/// A dissemination barrier: ⌈log2 n⌉ empty messages.
Traffic barrier_traffic(int size);

/// Equal shards: (n − 1) · shard bytes out and as many in, n − 1 messages.
Traffic all_gather_traffic(int size, Index shard_elements, ElementType type);

/// Shards of different sizes: (n − 1) · own shard out, the others' shards in.
Traffic all_gather_v_traffic(int rank, const std::vector<Index>& shard_elements, ElementType type);

/// Every rank holds n · piece elements and keeps the sum of its piece: (n − 1) · piece out and in. The sum itself is
/// local.
Traffic reduce_scatter_traffic(int size, Index piece_elements, ElementType type);

/// Pieces of different sizes: the others' pieces out, and n − 1 copies of its own come in.
Traffic reduce_scatter_v_traffic(int rank, const std::vector<Index>& piece_elements, ElementType type);

/// A reduce-scatter of the pieces followed by an all-gather of the sums. `elements` need not be divisible by n: piece r
/// is the range from ⌊r · elements / n⌋ to ⌊(r + 1) · elements / n⌋. Two ranks send each other everything and add by
/// themselves: the same bytes in one message, not two.
Traffic all_reduce_traffic(int rank, int size, Index elements, ElementType type);

/// send_counts[r] elements go to rank r and recv_counts[r] come from it; its own entry moves nothing.
Traffic all_to_all_v_traffic(int rank, const std::vector<Index>& send_counts, const std::vector<Index>& recv_counts,
                             ElementType type);

/// The root sends everything to each other rank: (n − 1) messages out of the root, one into each other.
Traffic broadcast_traffic(int rank, int root, int size, Index elements, ElementType type);

/// One message.
Traffic send_traffic(Index elements, ElementType type);
/// The same message at the rank that receives it.
Traffic recv_traffic(Index elements, ElementType type);

/// The piece of `elements` that rank `rank` of `size` sums up in an all-reduce: {begin, end}.
std::pair<Index, Index> all_reduce_piece(int rank, int size, Index elements);

}  // namespace muonwalk
