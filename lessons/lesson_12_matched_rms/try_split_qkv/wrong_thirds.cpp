// fails: three equal parts
#include "lessons/lesson_12_matched_rms/try_split_qkv/contract.hpp"

using namespace muonwalk;

// As if k and v had as many heads as q.
Matrix split_qkv(const Matrix& slice, const AttentionRows& attention, Communicator& tp) {
  Matrix whole = tp_gather(tp, slice, SplitDim::rows, Precision::fp32);
  for (Index third = 0; third < 3; ++third) {
    const Piece piece{"", {{third * whole.rows() / 3, (third + 1) * whole.rows() / 3}}};
    put_rows(newton_schulz(take_rows(whole, piece)), piece, whole);
  }
  return tp_shard(whole, SplitDim::rows, tp.size(), tp.rank());
}
