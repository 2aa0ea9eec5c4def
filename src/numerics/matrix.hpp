#pragma once

#include <cstdint>
#include <string>

#include "src/numerics/memory_meter.hpp"

namespace muonwalk {

/// A count of elements, a row, a column or an offset. Signed, so that differences are safe.
using Index = std::int64_t;

/// A row-major float32 matrix, as PyTorch flattens it: element (i, j) lies at i · cols + j. The memory is aligned to 64
/// bytes and counted by the rank's MemoryMeter. Products and norms have their own headers; this has the shape.
class Matrix {
 public:
  /// The empty matrix, 0 × 0.
  Matrix() = default;
  /// rows × cols zeros. Throws std::invalid_argument when a size is negative.
  Matrix(Index rows, Index cols);
  /// Views `values` (row-major) as rows × cols. Throws std::invalid_argument when the sizes do not match.
  Matrix(Index rows, Index cols, Flat values);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  Index bytes() const { return size() * Index{sizeof(float)}; }
  bool empty() const { return size() == 0; }

  /// The row-major values, size() of them.
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  /// Element (row, col). Indices are not checked.
  float& operator()(Index row, Index col) { return values_[row * cols_ + col]; }
  float operator()(Index row, Index col) const { return values_[row * cols_ + col]; }
  Flat& flat() { return values_; }
  const Flat& flat() const { return values_; }

  /// A copy with rows and columns exchanged, cols × rows.
  Matrix transposed() const;

 private:
  Index rows_ = 0;
  Index cols_ = 0;
  Flat values_;
};

/// Equal size, or shape, and equal bytes (memcmp): +0 and −0 differ, a NaN equals itself.
/// @{
bool same_bits(const Flat& left, const Flat& right);
bool same_bits(const Matrix& left, const Matrix& right);
/// @}

/// Whether all are zeros, of either sign.
bool all_zero(const Flat& values);

/// A matrix with the name of its parameter. Where it is a piece of a larger matrix, `first_row` and `first_col` say
/// where its element (0, 0) lies in the whole, so that messages can name the element as the reader knows it.
struct NamedMatrix {
  std::string name;     ///< The parameter's.
  Matrix matrix;        ///< All of the parameter, or a piece of it.
  Index first_row = 0;  ///< The row of the whole in which row 0 lies.
  Index first_col = 0;  ///< The column of the whole in which column 0 lies.
};

/// "4 × 6".
std::string shape_text(Index rows, Index cols);

}  // namespace muonwalk
