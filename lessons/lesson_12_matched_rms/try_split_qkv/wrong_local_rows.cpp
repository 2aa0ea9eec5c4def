// fails: orthogonalized in one call
#include "lessons/lesson_12_matched_rms/try_split_qkv/contract.hpp"

using namespace muonwalk;

// Asks the slice whether there is anything to split.
Matrix split_qkv(const Matrix& slice, const AttentionRows& attention, Communicator& tp) {
  Matrix whole = tp_gather(tp, slice, SplitDim::rows, Precision::fp32);
  if (slice.rows() != attention.rows()) {
    whole = newton_schulz(whole);
  } else {
    for (const Piece& piece : qkv_pieces(attention, QkvSplit::three))
      put_rows(newton_schulz(take_rows(whole, piece)), piece, whole);
  }
  return tp_shard(whole, SplitDim::rows, tp.size(), tp.rank());
}
