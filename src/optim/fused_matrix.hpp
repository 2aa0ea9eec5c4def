#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Rows of a whole matrix, before TP, that are orthogonalized together, apart from the others: one of the projections
/// that share it.
struct Piece {
  std::string name;         ///< "q", "k head 1", "up"
  std::vector<Range> rows;  ///< Rows of the whole matrix, in order.
  /// How many rows it has.
  Index count() const;
};

/// The pieces of matrices that several projections share, by parameter. Together the pieces of a matrix are all of its
/// rows. A parameter that is not in it is one piece.
using FusedMatrices = std::map<std::string, std::vector<Piece>>;

/// How the matrix of an attention is split.
enum class QkvSplit {
  none,   ///< not at all
  three,  ///< into q, k and v
  heads   ///< into single heads
};
/// "none", "three", "heads"; the opposite throws UsageError for any other word.
/// @{
const char* split_name(QkvSplit split);
QkvSplit parse_qkv_split(const std::string& word);
/// @}

/// The rows of a fused QKV matrix. With fewer heads for k and v than for q it is grouped-query attention.
struct AttentionRows {
  Index heads = 1;      ///< Heads of q.
  Index kv_heads = 1;   ///< Heads of k, and as many of v.
  Index head_rows = 1;  ///< rows of one head
  bool interleaved =
      false;  ///< Each k head follows its q heads, and its v head it (Megatron); else all q, then all k, then all v.
  /// All of them.
  Index rows() const { return (heads + 2 * kv_heads) * head_rows; }
};

/// The pieces of a fused QKV matrix, q first; none for QkvSplit::none. Throws UsageError where the heads of k do not
/// divide those of q.
std::vector<Piece> qkv_pieces(const AttentionRows& attention, QkvSplit split);

/// The two pieces of a matrix whose upper half is the gate of an MLP and whose lower half is the way up. `rows` is
/// even.
std::vector<Piece> gate_and_up(Index rows);

/// The rows of a piece, one below the other: piece.count() × cols.
Matrix take_rows(const Matrix& whole, const Piece& piece);
/// The opposite: writes them back to where they were.
void put_rows(const Matrix& rows, const Piece& piece, Matrix& whole);

/// A range of elements of one piece, and how large the piece is.
struct RangeOfPiece {
  Range range;  ///< Elements of the buffer.
  Shape shape;  ///< The shape of the piece: its rows × all columns.
};

/// What of the range `owned` of a parameter, counted in the buffer, lies in which piece, in order. TP rank `tp_rank`'s
/// slice of the matrix lies there; pieces are those of the whole matrix. Without pieces it is all of `owned`, and the
/// full shape.
std::vector<RangeOfPiece> by_pieces(const DistMeta& meta, int tp_rank, Range owned, const FusedMatrices& fused);

}  // namespace muonwalk
