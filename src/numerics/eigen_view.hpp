#pragma once

// Eigen costs a second to compile and does not belong on the shared library's boundary: include this in .cpp files.
#include <Eigen/Core>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Eigen's type for what a Matrix holds: row-major float32.
using EigenMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Views a Matrix as an Eigen matrix, without a copy. It holds until the matrix is resized or freed.
/// @{
inline Eigen::Map<EigenMatrix> eigen_view(Matrix& x) { return Eigen::Map<EigenMatrix>(x.data(), x.rows(), x.cols()); }
inline Eigen::Map<const EigenMatrix> eigen_view(const Matrix& x) {
  return Eigen::Map<const EigenMatrix>(x.data(), x.rows(), x.cols());
}
/// @}

}  // namespace muonwalk
