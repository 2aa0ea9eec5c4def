#include "sim/lesson_16/gate.hpp"

#include <algorithm>
#include <cmath>

#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk::sim {

const Parameter& gate() {
  static const Parameter parameter = {"gate", {6, 4}, SplitDim::rows};
  return parameter;
}

Matrix gate_gradient(std::uint64_t seed, int dp_rank) {
  constexpr std::uint64_t kFirstTensor = std::uint64_t{1} << 40;  // no tensor of the model's has its numbers
  return random_matrix({seed, kFirstTensor + static_cast<std::uint64_t>(dp_rank)}, gate().shape.rows,
                       gate().shape.cols);
}

Matrix summed_gate(std::uint64_t seed, int dp) {
  std::vector<Flat> leaves;
  for (int rank = 0; rank < dp; ++rank) leaves.push_back(gate_gradient(seed, rank).flat());
  return Matrix(gate().shape.rows, gate().shape.cols, tree_sum(leaves));
}

Matrix next_piece(const Matrix& piece, const Matrix& gram) {
  const Quintic q;
  Matrix polynomial, next;
  multiply(gram, gram, polynomial);
  for (Index i = 0; i < gram.size(); ++i) polynomial.data()[i] = q.b * gram.data()[i] + q.c * polynomial.data()[i];
  multiply(polynomial, piece, next);
  for (Index i = 0; i < piece.size(); ++i) next.data()[i] = q.a * piece.data()[i] + next.data()[i];
  return next;
}

std::vector<Matrix> gram_in_pieces(const Matrix& sum, int tp) {
  std::vector<Matrix> pieces;  // 4 × 6 / tp: the side that TP does not cut comes first
  std::vector<float> squares;
  for (int t = 0; t < tp; ++t) {
    pieces.push_back(tp_slice(sum, gate().tp_split_dim, tp, t).transposed());
    squares.push_back(static_cast<float>(pairwise_sum_of_squares(pieces.back().data(), pieces.back().size())));
  }
  const float norm = std::sqrt(tree_sum(squares.data(), static_cast<Index>(squares.size())));
  for (Matrix& piece : pieces) scale(piece, 1 / norm);
  for (int step = 0; step < 5; ++step) {
    std::vector<Flat> products;
    for (const Matrix& piece : pieces) {
      Matrix product;
      symmetric_product(piece, piece, product);
      products.push_back(product.flat());
    }
    const Matrix gram(pieces[0].rows(), pieces[0].rows(), tree_sum(products));
    for (Matrix& piece : pieces) piece = next_piece(piece, gram);
  }
  for (Matrix& piece : pieces) piece = piece.transposed();
  return pieces;
}

std::vector<Index> parts_of_slice(const Grid& grid) {
  std::vector<Index> counts;
  for (int rank = 0; rank < grid.dp(); ++rank) counts.push_back(rows_of_rank(grid, rank).size() * gate().shape.cols);
  return counts;
}

Range rows_of_rank(const Grid& grid, int dp_rank) {
  const Index rows = tp_shape(gate(), grid.tp()).rows, chunk = (rows + grid.dp() - 1) / grid.dp();
  return {std::min(rows, dp_rank * chunk), std::min(rows, (dp_rank + 1) * chunk)};
}

void scale(Matrix& matrix, float factor) {
  for (float& value : matrix.flat()) value *= factor;
}

Ledger gate_ledger(const Grid& grid, const Place& place, int worker) {
  constexpr ElementType kType = ElementType::float32;
  const Index slice = tp_shape(gate(), grid.tp()).size();
  const bool works = place.dp == worker;
  const std::vector<Index> parts = parts_of_slice(grid), none(static_cast<std::size_t>(grid.dp()), 0);
  std::vector<Index> to_worker = none, whole = none;
  to_worker[static_cast<std::size_t>(worker)] = parts[static_cast<std::size_t>(place.dp)];
  whole[static_cast<std::size_t>(worker)] = slice;
  const std::vector<Index>& from = works ? parts : none;

  Ledger ledger;
  for (const std::vector<Index>& counts : {parts, whole})
    ledger.add("dp", CollectiveKind::reduce_scatter, kType, 1, reduce_scatter_v_traffic(place.dp, counts, kType));
  ledger.add("dp", CollectiveKind::all_to_all, kType, 1, all_to_all_v_traffic(place.dp, to_worker, from, kType));
  ledger.add("dp", CollectiveKind::all_to_all, kType, 1, all_to_all_v_traffic(place.dp, from, to_worker, kType));
  if (!works) return ledger;
  const Index side = gate().shape.cols;
  if (grid.tp() > 1)
    ledger.add("tp", CollectiveKind::all_gather, kType, 1, all_gather_traffic(grid.tp(), slice, kType));
  ledger.add("tp", CollectiveKind::all_reduce, kType, 1, all_reduce_traffic(place.tp, grid.tp(), 1, kType));
  for (int step = 0; step < 5; ++step)
    ledger.add("tp", CollectiveKind::all_reduce, kType, 1, all_reduce_traffic(place.tp, grid.tp(), side * side, kType));
  return ledger;
}

}  // namespace muonwalk::sim
