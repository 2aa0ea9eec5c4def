#include "src/numerics/newton_schulz.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/names.hpp"

namespace muonwalk {

namespace {

constexpr double epsilon = 1e-7;  // keeps a zero matrix from being divided by zero

// Names the first element of `wide` that is not finite; `wide` is the parameter itself, or its transpose if that is
// tall.
[[noreturn]] void refuse(const Matrix& wide, bool tall, bool after_rounding, const std::string& parameter) {
  const float* const end = wide.data() + wide.size();
  const float* const bad = std::find_if(wide.data(), end, [](float value) { return !std::isfinite(value); });
  Index row = (bad - wide.data()) / wide.cols();
  Index col = (bad - wide.data()) % wide.cols();
  if (tall) std::swap(row, col);
  const char* what = std::isnan(*bad) ? "a NaN"
                     : after_rounding ? "a number that rounds to an infinity in bfloat16"
                                      : "an infinity";
  throw UsageError("parameter " + in_quotes(parameter) + " holds " + what + " at row " + std::to_string(row) +
                   ", column " + std::to_string(col) +
                   "; Newton–Schulz needs finite numbers, so check the gradients that were passed in");
}

// Rounds a positive number to the eight significant bits of a bfloat16, with the exponents of a double: the norm of a
// large matrix of large numbers lies beyond bfloat16's own range, where nothing but the quotient matters.
double round_to_eight_bits(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

// The division is done in double precision, because the norm of finite floats need not be a finite float.
void divide(float* values, Index count, double denominator) {
  for (Index i = 0; i < count; ++i) values[i] = static_cast<float>(values[i] / denominator);
}

void divide(Matrix& x, double denominator, int threads) {
  if (threads <= 1) return divide(x.data(), x.size(), denominator);  // no parallel region before a fork
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Index row = 0; row < x.rows(); ++row) divide(x.data() + row * x.cols(), x.cols(), denominator);
}

// A sum of squares of floats in double precision is finite exactly if all of its terms are, so that no time goes into
// looking for a NaN while all is well.
void normalize(Matrix& wide, bool tall, const NewtonSchulzSettings& settings, const std::string& parameter) {
  double norm = frobenius_norm(wide);
  if (!std::isfinite(norm)) refuse(wide, tall, false, parameter);
  if (settings.precision == Precision::fp32) {
    divide(wide, norm + epsilon, settings.threads);
    return;
  }
  round_to_bf16(wide.data(), wide.size());
  norm = frobenius_norm(wide);
  if (!std::isfinite(norm)) refuse(wide, tall, true, parameter);
  divide(wide, round_to_eight_bits(round_to_eight_bits(norm) + epsilon), settings.threads);
  round_to_bf16(wide.data(), wide.size());
}

void iterate(Matrix& x, const NewtonSchulzSettings& settings,
             const std::function<void(int step, const Matrix& x)>& after_step) {
  NewtonSchulzBuffers buffers(x.rows(), x.cols(), settings.precision);
  if (after_step) after_step(0, x);
  for (int step = 1; step <= settings.steps; ++step) {
    (settings.products == Products::eigen ? eigen_step : chain_step)(x, settings, buffers);
    std::swap(x, buffers.next);
    if (after_step) after_step(step, x);
  }
}

}  // namespace

Matrix newton_schulz(const Matrix& x, const NewtonSchulzSettings& settings, const std::string& parameter,
                     const std::function<void(int step, const Matrix& x)>& after_step) {
  const bool tall = x.rows() > x.cols();
  Matrix wide = tall ? x.transposed() : x;
  normalize(wide, tall, settings, parameter);
  iterate(wide, settings, after_step);
  if (tall) return wide.transposed();
  return wide;
}

double newton_schulz_flops(Index rows, Index cols, int steps) {
  const double m = static_cast<double>(std::min(rows, cols));
  const double n = static_cast<double>(std::max(rows, cols));
  return steps * (4 * m * m * n + 2 * m * m * m);
}

double newton_schulz_flops_by_halves(Index rows, Index cols, Precision precision, int steps) {
  const double m = static_cast<double>(std::min(rows, cols));
  const double n = static_cast<double>(std::max(rows, cols));
  return steps * (3 * m * m * n + (precision == Precision::bf16 ? 2 : 1) * m * m * m);
}

}  // namespace muonwalk
