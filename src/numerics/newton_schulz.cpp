#include "src/numerics/newton_schulz.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/code_for_processor.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/names.hpp"

namespace muonwalk {

extern const StepCode eigen_code_base;
#ifdef __x86_64__
extern const StepCode eigen_code_avx512;
#endif

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

bool rounds_before_norm(const NewtonSchulzSettings& settings) {
  return settings.precision == Precision::bf16 && settings.normalization.round_first;
}

// With the polynomial that step number `step` takes, counted from 1.
NewtonSchulzSettings with_quintic_of(int step, NewtonSchulzSettings settings) {
  const auto& all = settings.schedule;
  if (!all.empty()) settings.quintic = all[std::min(static_cast<std::size_t>(step), all.size()) - 1];
  return settings;
}

// The formula that every engine knows.
bool is_plain(const NewtonSchulzSettings& settings) {
  const Normalization& n = settings.normalization;
  const Normalization plain;
  return settings.schedule.empty() && settings.lines == IterationLines::scaled_first && !settings.from_the_right &&
         !settings.gram && n.epsilon == plain.epsilon && n.floor == plain.floor && n.cushion == plain.cushion &&
         n.round_first == plain.round_first && n.equal_rows == plain.equal_rows;
}

// Brings every row of the matrix that X is, or with `turned` is the transpose of, to √(‖X‖² / rows), where its own norm
// is not zero. In bf16 the factor and the products round.
void make_rows_equal(Matrix& x, bool turned, bool bf16, double squares) {
  const Index rows = turned ? x.cols() : x.rows(), cols = turned ? x.rows() : x.cols();
  const auto at = [&](Index row, Index col) -> float& { return turned ? x(col, row) : x(row, col); };
  for (Index row = 0; row < rows; ++row) {
    double of_row = 0;
    for (Index col = 0; col < cols; ++col) of_row += static_cast<double>(at(row, col)) * at(row, col);
    if (of_row == 0) continue;
    const float factor = static_cast<float>(std::sqrt(squares / static_cast<double>(rows) / of_row));
    for (Index col = 0; col < cols; ++col)
      at(row, col) = bf16 ? nearest_bf16(at(row, col) * nearest_bf16(factor)) : at(row, col) * factor;
  }
}

const StepCode& code_of(const NewtonSchulzSettings& settings) {
  return settings.products == Products::eigen ? eigen_code() : chain_code;
}

using AfterStep = std::function<void(int step, const Matrix& x)>;

void iterate(Matrix& x, const NewtonSchulzSettings& settings, const AfterStep& after_step) {
  NewtonSchulzBuffers buffers(x.rows(), x.cols(), settings.precision);
  for (int step = 1; step <= settings.steps; ++step) {
    newton_schulz_gram(x, settings, buffers);
    newton_schulz_update(x, step, settings, buffers);
    if (after_step) after_step(step, x);
  }
}

// A step is X ← (a + Z) X with Z = b R + c R R and R = X Xᵀ, and makes (a + Z) R (a + Z) of R. So X itself is needed
// only where steps begin, and where they end: there it is multiplied by Q, the product of all (a + Z) since. As all of
// them are polynomials of one R, their products are symmetric, but for rounding. That grows in R, so the third step
// begins anew with R = X Xᵀ.
void iterate_on_gram(Matrix& x, const NewtonSchulzSettings& settings, const AfterStep& after_step) {
  const StepCode& code = code_of(settings);
  NewtonSchulzBuffers buffers(x.rows(), x.rows(), settings.precision);
  Matrix &r = buffers.a, &z = buffers.b, &next = buffers.next, q;
  const auto begins = [&](int step) { return step == 1 || step == kGramBeginsAnew; };
  const auto x_after = [&] {
    Matrix product(x.rows(), x.cols());
    code.next({x, q, product}, settings);
    return product;
  };
  for (int step = 1; step <= settings.steps; ++step) {
    const NewtonSchulzSettings of_step = with_quintic_of(step, settings);
    const auto multiply = [&](Matrix& by) {  // by (a + Z)
      code.next({by, z, next, of_step.quintic.a, 1, true}, of_step);
      std::swap(by, next);
    };
    if (begins(step)) code.gram(x, settings, buffers);
    code.polynomial(of_step, buffers);
    if (begins(step)) {
      q = z;
      const auto rounded = [&](float v) { return settings.precision == Precision::bf16 ? nearest_bf16(v) : v; };
      for (Index i = 0; i < q.rows(); ++i) q(i, i) = rounded(q(i, i) + rounded(of_step.quintic.a));
    } else {
      multiply(q);
    }
    if (after_step) after_step(step, x_after());
    if (step == settings.steps || begins(step + 1))
      x = x_after();
    else
      multiply(r), multiply(r);
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

// A sum of squares of floats in double precision is finite exactly if all of its terms are, so that no time goes into
// looking for a NaN while all is well.
double squares_of_norm(Matrix& x, bool turned, const NewtonSchulzSettings& settings, const std::string& parameter) {
  double squares = pairwise_sum_of_squares(x.data(), x.size());
  if (!std::isfinite(squares)) refuse_what_is_not_finite(x, turned, false, parameter);
  if (rounds_before_norm(settings)) {
    round_to_bf16(x.data(), x.size());
    squares = pairwise_sum_of_squares(x.data(), x.size());
    if (!std::isfinite(squares)) refuse_what_is_not_finite(x, turned, true, parameter);
  }
  if (!settings.normalization.equal_rows) return squares;
  make_rows_equal(x, turned, rounds_before_norm(settings), squares);
  return pairwise_sum_of_squares(x.data(), x.size());
}

void divide_by_norm(Matrix& x, double squares, const NewtonSchulzSettings& settings) {
  const Precision of_the_norm = rounds_before_norm(settings) ? Precision::bf16 : Precision::fp32;
  divide(x, newton_schulz_denominator(std::sqrt(squares), of_the_norm, settings.normalization), settings.threads);
  if (settings.precision == Precision::bf16) round_to_bf16(x.data(), x.size());
}

std::vector<const StepCode*> eigen_codes() {
  std::vector<const StepCode*> codes = {&eigen_code_base};
#ifdef __x86_64__
  if (has_avx512()) codes.push_back(&eigen_code_avx512);
#endif
  return codes;
}

const StepCode& eigen_code() {
  static const StepCode& code = chosen_code(eigen_codes(), "MUONWALK_EIGEN", "Eigen's products");
  return code;
}

void newton_schulz_gram(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  code_of(settings).gram(x, settings, buffers);
}

void newton_schulz_update(Matrix& x, int step, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  const NewtonSchulzSettings of_step = with_quintic_of(step, settings);
  const Quintic& q = of_step.quintic;
  const bool needs_b = q.c != 0 || settings.lines != IterationLines::one_call;
  if (needs_b) code_of(settings).polynomial(of_step, buffers);
  code_of(settings).next({x, needs_b ? buffers.b : buffers.a, buffers.next, q.a, needs_b ? 1 : q.b}, of_step);
  std::swap(x, buffers.next);
}

Matrix newton_schulz(const Matrix& x, const NewtonSchulzSettings& settings, const std::string& parameter,
                     const std::function<void(int step, const Matrix& x)>& after_step) {
  if (settings.products == Products::chain && chain_engine != nullptr && !after_step && is_plain(settings))
    return (*chain_engine)(x, settings, parameter);
  const bool tall = x.rows() > x.cols();
  Matrix wide = tall ? x.transposed() : x;
  divide_by_norm(wide, squares_of_norm(wide, tall, settings, parameter), settings);
  NewtonSchulzSettings chosen = settings;
  chosen.from_the_right = settings.from_the_right && tall;
  if (after_step) after_step(0, wide);
  (settings.gram && wide.rows() < wide.cols() ? iterate_on_gram : iterate)(wide, chosen, after_step);
  if (tall) return wide.transposed();
  return wide;
}

double newton_schulz_flops(Index rows, Index cols, int steps) {
  return newton_schulz_flops_of_piece(std::min(rows, cols), std::max(rows, cols), steps);
}

double newton_schulz_flops(Index rows, Index cols, const NewtonSchulzSettings& settings) {
  if (!settings.gram || rows == cols) return newton_schulz_flops(rows, cols, settings.steps);
  const double m = static_cast<double>(std::min(rows, cols)), n = static_cast<double>(std::max(rows, cols));
  const int begins = settings.steps == 0 ? 0 : settings.steps < kGramBeginsAnew ? 1 : 2;
  return begins * 4 * m * m * n + (4 * settings.steps - 3 * begins) * 2 * m * m * m;
}

double newton_schulz_flops_of_piece(Index rows, Index cols, int steps) {
  const double m = static_cast<double>(rows);
  const double n = static_cast<double>(cols);
  return steps * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace muonwalk
