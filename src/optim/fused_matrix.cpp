#include "src/optim/fused_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

// The piece that row `row` of the whole matrix is in.
const Piece& piece_of_row(const std::vector<Piece>& pieces, Index row) {
  return *std::find_if(pieces.begin(), pieces.end(), [row](const Piece& piece) {
    return std::any_of(piece.rows.begin(), piece.rows.end(),
                       [row](Range rows) { return rows.begin <= row && row < rows.end; });
  });
}

}  // namespace

Index Piece::count() const {
  Index count = 0;
  for (const Range& range : rows) count += range.size();
  return count;
}

const char* split_name(QkvSplit split) {
  return split == QkvSplit::none ? "none" : split == QkvSplit::three ? "three" : "heads";
}

QkvSplit parse_qkv_split(const std::string& word) {
  for (const QkvSplit split : {QkvSplit::none, QkvSplit::three, QkvSplit::heads})
    if (word == split_name(split)) return split;
  throw UsageError("--split-qkv " + in_quotes(word) + " is not known; it takes none, three or heads");
}

std::vector<Piece> qkv_pieces(const AttentionRows& attention, QkvSplit split) {
  if (attention.heads < 1 || attention.kv_heads < 1 || attention.heads % attention.kv_heads != 0)
    throw UsageError(fmt::format("{} heads of k and v can't be shared by {} heads of q; give a number that divides it",
                                 attention.kv_heads, attention.heads));
  if (split == QkvSplit::none) return {};
  const Index q_per_kv = attention.heads / attention.kv_heads;
  std::vector<Piece> pieces;
  for (const char kind : {'q', 'k', 'v'}) {
    if (split == QkvSplit::three) pieces.push_back({std::string(1, kind), {}});
    for (Index head = 0; head < (kind == 'q' ? attention.heads : attention.kv_heads); ++head) {
      // Which head it is, counted over all rows of the matrix.
      Index number = head + (kind == 'k' ? attention.heads : kind == 'v' ? attention.heads + attention.kv_heads : 0);
      if (attention.interleaved)
        number = kind == 'q' ? head / q_per_kv * (q_per_kv + 2) + head % q_per_kv
                             : head * (q_per_kv + 2) + q_per_kv + (kind == 'v' ? 1 : 0);
      const Range rows{number * attention.head_rows, (number + 1) * attention.head_rows};
      if (split == QkvSplit::heads) pieces.push_back({fmt::format("{} head {}", kind, head), {}});
      std::vector<Range>& ranges = pieces.back().rows;
      if (!ranges.empty() && ranges.back().end == rows.begin)
        ranges.back().end = rows.end;
      else
        ranges.push_back(rows);
    }
  }
  return pieces;
}

std::vector<Piece> gate_and_up(Index rows) { return {{"gate", {{0, rows / 2}}}, {"up", {{rows / 2, rows}}}}; }

Matrix take_rows(const Matrix& whole, const Piece& piece) {
  Matrix rows(piece.count(), whole.cols());
  float* to = rows.data();
  for (const Range& range : piece.rows)
    to = std::copy_n(whole.data() + range.begin * whole.cols(), range.size() * whole.cols(), to);
  return rows;
}

void put_rows(const Matrix& rows, const Piece& piece, Matrix& whole) {
  const float* from = rows.data();
  for (const Range& range : piece.rows) {
    const Index count = range.size() * whole.cols();
    std::copy_n(from, count, whole.data() + range.begin * whole.cols());
    from += count;
  }
}

std::vector<RangeOfPiece> by_pieces(const DistMeta& meta, int tp_rank, Range owned, const FusedMatrices& fused) {
  const auto found = fused.find(meta.name);
  if (found == fused.end() || owned.empty()) return {{owned, meta.full_shape}};
  const Index first_row = meta.tp_split_dim == SplitDim::rows ? tp_rank * meta.shape.rows : 0;
  std::vector<RangeOfPiece> ranges;
  const Piece* last = nullptr;
  for (Index at = owned.begin; at < owned.end;) {
    const Index row = (at - meta.global_range.begin) / meta.shape.cols;
    const Index end = std::min(owned.end, meta.global_range.begin + (row + 1) * meta.shape.cols);
    const Piece& piece = piece_of_row(found->second, first_row + row);
    if (&piece == last)
      ranges.back().range.end = end;
    else
      ranges.push_back({{at, end}, {piece.count(), meta.full_shape.cols}});
    last = &piece;
    at = end;
  }
  return ranges;
}

}  // namespace muonwalk
