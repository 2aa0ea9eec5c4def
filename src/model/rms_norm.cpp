#include "src/model/rms_norm.hpp"

#include <cmath>

#include "src/model/lane_sum.hpp"

namespace muonwalk {

void rms_norm(const Matrix& x, const Matrix& gain, float epsilon, Matrix& out, Flat& inverse_rms) {
  const Index width = x.cols();
  out = Matrix(x.rows(), width);
  inverse_rms.assign(static_cast<std::size_t>(x.rows()), 0);
  for (Index t = 0; t < x.rows(); ++t) {
    const float* row = x.data() + t * width;
    const float mean = lane_dot(row, row, width) / static_cast<float>(width);
    const float inverse = 1.0f / std::sqrt(mean + epsilon);
    inverse_rms[static_cast<std::size_t>(t)] = inverse;
    for (Index i = 0; i < width; ++i) out.data()[t * width + i] = row[i] * inverse * gain.data()[i];
  }
}

Matrix rms_norm_backward(const Matrix& d_out, const Matrix& x, const Matrix& gain, const Flat& inverse_rms,
                         Matrix& d_gain) {
  const Index width = x.cols();
  Matrix d_x(x.rows(), width);
  Flat scaled(static_cast<std::size_t>(width));  // gain ∘ dy
  for (Index t = 0; t < x.rows(); ++t) {
    const float* row = x.data() + t * width;
    const float* d_row = d_out.data() + t * width;
    const float inverse = inverse_rms[static_cast<std::size_t>(t)];
    for (Index i = 0; i < width; ++i) {
      scaled[static_cast<std::size_t>(i)] = gain.data()[i] * d_row[i];
      d_gain.data()[i] += d_row[i] * (row[i] * inverse);
    }
    const float along = lane_dot(scaled.data(), row, width);
    const float pull = inverse * inverse * inverse / static_cast<float>(width) * along;
    for (Index i = 0; i < width; ++i)
      d_x.data()[t * width + i] = inverse * scaled[static_cast<std::size_t>(i)] - row[i] * pull;
  }
  return d_x;
}

}  // namespace muonwalk
