#include "src/numerics/matrix.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace muonwalk {

namespace {

// rows · cols, once both are known to be sizes. A product that overflows would be a small size by accident.
Index checked_size(Index rows, Index cols) {
  if (rows < 0 || cols < 0) {
    throw std::invalid_argument("a matrix of " + shape_text(rows, cols) +
                                " was asked for, but a size cannot be negative; give zero or more rows and columns");
  }
  if (cols > 0 && rows > std::numeric_limits<Index>::max() / Index{sizeof(float)} / cols) {
    throw std::invalid_argument("a matrix of " + shape_text(rows, cols) +
                                " was asked for, but its bytes do not fit in 63 bits; give a smaller shape");
  }
  return rows * cols;
}

}  // namespace

Matrix::Matrix(Index rows, Index cols)
    : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(checked_size(rows, cols)), 0.0f) {}

Matrix::Matrix(Index rows, Index cols, Flat values) : rows_(rows), cols_(cols), values_(std::move(values)) {
  if (checked_size(rows, cols) != static_cast<Index>(values_.size())) {
    throw std::invalid_argument(std::to_string(values_.size()) + " values cannot be viewed as " +
                                shape_text(rows, cols) + ", which needs " + std::to_string(rows * cols) +
                                "; give a shape of that many elements");
  }
}

Matrix Matrix::transposed() const {
  Matrix result(cols_, rows_);
  constexpr Index block = 32;  // 32 × 32 floats are 4 KiB: both sides of a block stay in the first-level cache
  for (Index i0 = 0; i0 < rows_; i0 += block) {
    const Index i1 = std::min(i0 + block, rows_);
    for (Index j0 = 0; j0 < cols_; j0 += block) {
      const Index j1 = std::min(j0 + block, cols_);
      for (Index j = j0; j < j1; ++j) {
        for (Index i = i0; i < i1; ++i) result(j, i) = (*this)(i, j);
      }
    }
  }
  return result;
}

bool same_bits(const Flat& left, const Flat& right) {
  if (left.size() != right.size()) return false;
  return left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

bool same_bits(const Matrix& left, const Matrix& right) {
  return left.rows() == right.rows() && left.cols() == right.cols() && same_bits(left.flat(), right.flat());
}

bool all_zero(const Flat& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

std::string shape_text(Index rows, Index cols) { return std::to_string(rows) + " × " + std::to_string(cols); }

}  // namespace muonwalk
