#include "src/numerics/bfloat16.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz_steps.hpp"

namespace muonwalk {

ChainProduct chain_square(Index m, Index n, Precision precision, const float* x, float* a) {
  ChainProduct square;
  square.rows = square.cols = m;
  square.depth = n;
  square.left = square.right = x;
  square.right_transposed = true;
  square.symmetric = true;
  square.out = a;
  square.precision = precision;
  return square;
}

ChainProduct chain_polynomial(Index m, const Quintic& q, Precision precision, const float* a, const float* scaled,
                              float* b) {
  ChainProduct polynomial;
  polynomial.rows = polynomial.cols = polynomial.depth = m;
  polynomial.left = polynomial.right = polynomial.addend = a;
  polynomial.addend_scale = q.b;
  polynomial.out = b;
  polynomial.precision = precision;
  if (precision == Precision::bf16) {
    // Rounded, c A is symmetric, but its product with A is not: the sum over k of (c A)(i, k) A(k, j) has c A rounded
    // in row i, and that for (j, i) in row j. All of it is computed.
    polynomial.left = scaled;
  } else {
    polynomial.left_scale = q.c;
    polynomial.symmetric = true;  // up to the last bit of c A, where the half below the diagonal decides
  }
  return polynomial;
}

ChainProduct chain_next(Index m, Index n, const Quintic& q, Precision precision, const float* x, const float* b,
                        float* next) {
  ChainProduct update;
  update.rows = update.depth = m;
  update.cols = n;
  update.left = b;
  update.right = update.addend = x;
  update.addend_scale = q.a;
  update.out = next;
  update.precision = precision;
  return update;
}

void chain_gram(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  compute(chain_square(x.rows(), x.cols(), settings.precision, x.data(), buffers.a.data()), settings.threads);
}

void chain_update(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  const bool in_bf16 = settings.precision == Precision::bf16;
  const Quintic& q = settings.quintic;
  float *const a = buffers.a.data(), *const b = buffers.b.data(), *const scaled = buffers.scaled.data();
  const Index size = buffers.a.size();
  const bool once = settings.lines == IterationLines::one_call;
  // sums ← from · start + factor · sums, rounded where the lines say
  const auto add_up = [&](float from, const float* start, float factor, Matrix& sums) {
    float* const sum = sums.data();
    for (Index i = 0; i < sums.size(); ++i) {
      const float first = from * start[i], second = factor * sum[i];
      sum[i] = !in_bf16 ? first + second
               : once   ? nearest_bf16(first + second)
                        : nearest_bf16(nearest_bf16(first) + nearest_bf16(second));
    }
  };
  // X ← a X + factor · left X
  const auto multiply_x = [&](const float* left, float factor) {
    ChainProduct next = chain_next(x.rows(), x.cols(), q, settings.precision, x.data(), left, buffers.next.data());
    next.addend = nullptr;
    next.leaves_sums = true;
    compute(next, settings.threads);
    add_up(q.a, x.data(), factor, buffers.next);
  };
  if (once && q.c == 0) return multiply_x(a, q.b);  // there is no B
  if (settings.lines != IterationLines::scaled_first) {
    ChainProduct square = chain_square(x.rows(), x.rows(), settings.precision, a, b);
    square.right_transposed = false;
    square.leaves_sums = once;
    compute(square, settings.threads);
    add_up(q.b, a, q.c, buffers.b);
    if (once && in_bf16) return multiply_x(b, 1);
  } else {
    for (Index i = 0; in_bf16 && i < size; ++i) scaled[i] = nearest_bf16(q.c * a[i]);
    compute(chain_polynomial(x.rows(), q, settings.precision, a, scaled, b), settings.threads);
    if (settings.from_the_right) transpose_in_place(buffers.b);
  }
  compute(chain_next(x.rows(), x.cols(), q, settings.precision, x.data(), b, buffers.next.data()), settings.threads);
}

}  // namespace muonwalk
