// fails: too many bytes
#include "lessons/lesson_12_matched_rms/try_split_qkv/contract.hpp"

using namespace muonwalk;

// Gathers everything once more for each of the three.
Matrix split_qkv(const Matrix& slice, const AttentionRows& attention, Communicator& tp) {
  Matrix result(slice.rows() * tp.size(), slice.cols());
  for (const Piece& piece : qkv_pieces(attention, QkvSplit::three)) {
    const Matrix whole = tp_gather(tp, slice, SplitDim::rows, Precision::fp32);
    put_rows(newton_schulz(take_rows(whole, piece)), piece, result);
  }
  return tp_shard(result, SplitDim::rows, tp.size(), tp.rank());
}
