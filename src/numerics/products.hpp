#pragma once

#include <type_traits>
#include <utility>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// What computes the products of Newton–Schulz. Each gives the same bits on every rank and with any number of threads;
/// between two of them the last bits differ, but for chain and tiles in fp32.
enum class Products {
  eigen,  ///< The iteration in Eigen's words.
  chain,  ///< Every element is one chain of multiply-adds, the same on every processor that has them fused.
  tiles,  ///< The same in fp32; in bf16 as AMX adds, in tiles (see ChainProduct), with the same bits on every
          ///< processor.
};

/// "eigen", "chain" or "tiles".
const char* products_name(Products products);

/// out = left · right. left m × k, right k × n, out m × n (resized, apart from the factors). Every element is one chain
/// of multiply-adds in the order of k, sum = fma(left(i, k), right(k, j), sum), and nothing else decides its bits:
/// neither the shape around it, nor the tile it falls into, nor the number of threads, nor the processor: what must not
/// depend on the grid uses this. (A processor without fused multiply-adds computes them in the C library, slowly.) With
/// threads = 1 no OpenMP region is opened. Throws std::invalid_argument when the inner sizes differ.
void multiply(const Matrix& left, const Matrix& right, Matrix& out, int threads = 1);

/// out = left · rightᵀ where the caller knows that the result is symmetric (right = left, or A and c·A for a symmetric
/// A). Only the tiles on and below the diagonal are computed; the others are mirrored, which saves nearly half of the
/// work. left and right m × k, out m × m (resized), exactly symmetric in its bits.
void symmetric_product(const Matrix& left, const Matrix& right, Matrix& out, int threads = 1);

/// Some rows and columns of a matrix, or all of them: element (i, j) is data[i · row + j], of its transpose
/// data[j · row + i]. A view is valid as long as the matrix is neither resized nor freed.
template <class Element>
struct ViewOf {
  using Whole = std::conditional_t<std::is_const_v<Element>, const Matrix, Matrix>;

  ViewOf() = default;
  ViewOf(Whole& all) : data(all.data()), rows(all.rows()), cols(all.cols()), row(all.cols()) {}
  ViewOf(Element* first, Index height, Index width, Index from_row_to_row)
      : data(first), rows(height), cols(width), row(from_row_to_row) {}
  template <class Other, std::enable_if_t<std::is_same_v<const Other, Element>, int> = 0>
  ViewOf(const ViewOf<Other>& other) : ViewOf(other.data, other.rows, other.cols, other.row) {}

  Element* data = nullptr;  ///< Element (0, 0).
  Index rows = 0;
  Index cols = 0;
  Index row = 0;            ///< The distance from one row of the matrix to the next.
  bool transposed = false;  ///< It is the transpose that is seen.
};
using ConstMatrixView = ViewOf<const float>;  ///< A view to look at.
using MatrixView = ViewOf<float>;             ///< A view to write to.

/// Rows first_row, … and columns first_col, … of a matrix, so many of each.
/// @{
ConstMatrixView part_of(const Matrix& whole, Index first_row, Index rows, Index first_col, Index cols);
MatrixView part_of(Matrix& whole, Index first_row, Index rows, Index first_col, Index cols);
/// @}

/// The transpose of what is seen; nothing moves.
inline ConstMatrixView transposed(ConstMatrixView x) {
  std::swap(x.rows, x.cols);
  x.transposed = !x.transposed;
  return x;
}

/// What a product does with what lies in `out` already: forget it, or go on from there, each element's chain being
/// longer by the depth of this product.
enum class Sums { begin, go_on };

/// left · right as chains: the products of a layer, forward and backward, whose bits do not depend on what is cut
/// where. left m × k, right k × n, either of them perhaps transposed. `out`, m × n, lies apart from the factors;
/// without it the product is a matrix of its own. Throws std::invalid_argument when sizes do not fit.
/// @{
void chain_product(ConstMatrixView left, ConstMatrixView right, MatrixView out, Sums sums = Sums::begin,
                   int threads = 1);
Matrix chain_product(ConstMatrixView left, ConstMatrixView right, int threads = 1);
/// @}

}  // namespace muonwalk
