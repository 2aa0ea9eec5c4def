#include "lessons/lesson_12_matched_rms/try_split_qkv/contract.hpp"

using namespace muonwalk;

// Gather first, and then ask which rows are of q: a slice may begin in the middle of a head.
Matrix split_qkv(const Matrix& slice, const AttentionRows& attention, Communicator& tp) {
  Matrix whole = tp_gather(tp, slice, SplitDim::rows, Precision::fp32);
  Index begin = 0;
  for (const Index heads : {attention.heads, attention.kv_heads, attention.kv_heads}) {
    const Index end = begin + heads * attention.head_rows;
    const Piece piece{"", {{begin, end}}};
    put_rows(newton_schulz(take_rows(whole, piece)), piece, whole);
    begin = end;
  }
  return tp_shard(whole, SplitDim::rows, tp.size(), tp.rank());
}
