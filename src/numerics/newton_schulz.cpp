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
  if (!std::isfinite(norm)) refuse_what_is_not_finite(wide, tall, false, parameter);
  if (settings.precision == Precision::fp32) {
    divide(wide, newton_schulz_denominator(norm, Precision::fp32, settings.normalization), settings.threads);
    return;
  }
  Precision of_the_norm = Precision::fp32;
  if (settings.normalization.round_first) {
    of_the_norm = Precision::bf16;
    round_to_bf16(wide.data(), wide.size());
    norm = frobenius_norm(wide);
    if (!std::isfinite(norm)) refuse_what_is_not_finite(wide, tall, true, parameter);
  }
  divide(wide, newton_schulz_denominator(norm, of_the_norm, settings.normalization), settings.threads);
  round_to_bf16(wide.data(), wide.size());
}

// Which polynomial step number `step` takes, counted from 1.
const Quintic& quintic_of(const NewtonSchulzSettings& settings, int step) {
  if (settings.schedule.empty()) return settings.quintic;
  return settings.schedule[std::min(static_cast<std::size_t>(step), settings.schedule.size()) - 1];
}

// The formula that every engine knows.
bool is_plain(const NewtonSchulzSettings& settings) {
  const Normalization& n = settings.normalization;
  const Normalization plain;
  return settings.schedule.empty() && !settings.product_first && !settings.from_the_right &&
         n.epsilon == plain.epsilon && n.floor == plain.floor && n.cushion == plain.cushion &&
         n.round_first == plain.round_first;
}

void iterate(Matrix& x, const NewtonSchulzSettings& settings,
             const std::function<void(int step, const Matrix& x)>& after_step) {
  NewtonSchulzBuffers buffers(x.rows(), x.cols(), settings.precision);
  if (after_step) after_step(0, x);
  NewtonSchulzSettings of_step = settings;
  for (int step = 1; step <= settings.steps; ++step) {
    of_step.quintic = quintic_of(settings, step);
    (settings.products == Products::eigen ? eigen_step : chain_step)(x, of_step, buffers);
    std::swap(x, buffers.next);
    if (after_step) after_step(step, x);
  }
}

thread_local const ChainEngine* chain_engine = nullptr;  // of the innermost scope

}  // namespace

ChainEngineScope::ChainEngineScope(const ChainEngine& engine) : previous_(chain_engine) { chain_engine = &engine; }

ChainEngineScope::~ChainEngineScope() { chain_engine = previous_; }

double newton_schulz_denominator(double norm, Precision precision, const Normalization& normalization) {
  const auto rounded = [precision](double value) {
    return precision == Precision::fp32 ? value : round_to_eight_bits(value);
  };
  const double cushioned = rounded(rounded(norm) * normalization.cushion);
  if (normalization.floor) return std::max(cushioned, rounded(normalization.epsilon));
  return rounded(cushioned + normalization.epsilon);
}

void transpose_in_place(Matrix& square) {
  for (Index i = 0; i < square.rows(); ++i)
    for (Index j = 0; j < i; ++j) std::swap(square(i, j), square(j, i));
}

void refuse_what_is_not_finite(const Matrix& wide, bool tall, bool after_rounding, const std::string& parameter) {
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

Matrix newton_schulz(const Matrix& x, const NewtonSchulzSettings& settings, const std::string& parameter,
                     const std::function<void(int step, const Matrix& x)>& after_step) {
  if (settings.products == Products::chain && chain_engine != nullptr && !after_step && is_plain(settings))
    return (*chain_engine)(x, settings, parameter);
  const bool tall = x.rows() > x.cols();
  Matrix wide = tall ? x.transposed() : x;
  normalize(wide, tall, settings, parameter);
  NewtonSchulzSettings chosen = settings;
  chosen.from_the_right = settings.from_the_right && tall;
  iterate(wide, chosen, after_step);
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
