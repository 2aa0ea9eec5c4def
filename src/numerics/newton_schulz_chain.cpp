#include "src/numerics/bfloat16.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz_steps.hpp"

namespace muonwalk {

namespace {

ChainProduct product_of(const NewtonSchulzSettings& settings) {
  ChainProduct product;
  product.precision = settings.precision;
  product.in_tiles = settings.products == Products::tiles;
  return product;
}

}  // namespace

ChainProduct chain_square(Index m, Index n, const NewtonSchulzSettings& settings, const float* x, float* a) {
  ChainProduct square = product_of(settings);
  square.rows = square.cols = m;
  square.depth = n;
  square.left = square.right = x;
  square.right_transposed = true;
  square.symmetric = true;
  square.out = a;
  return square;
}

ChainProduct chain_polynomial(Index m, const NewtonSchulzSettings& settings, const float* a, const float* scaled,
                              float* b) {
  ChainProduct polynomial = product_of(settings);
  polynomial.rows = polynomial.cols = polynomial.depth = m;
  polynomial.left = polynomial.right = polynomial.addend = a;
  polynomial.addend_scale = settings.quintic.b;
  polynomial.out = b;
  if (settings.precision == Precision::bf16) {
    // Rounded, c A is symmetric, but its product with A is not: the sum over k of (c A)(i, k) A(k, j) has c A rounded
    // in row i, and that for (j, i) in row j. All of it is computed.
    polynomial.left = scaled;
  } else {
    polynomial.left_scale = settings.quintic.c;
    polynomial.symmetric = true;  // up to the last bit of c A, where the half below the diagonal decides
  }
  return polynomial;
}

ChainProduct chain_next(Index m, Index n, float a, const NewtonSchulzSettings& settings, const float* x, const float* b,
                        float* next) {
  ChainProduct update = product_of(settings);
  update.rows = update.depth = m;
  update.cols = n;
  update.left = b;
  update.right = update.addend = x;
  update.addend_scale = a;
  update.out = next;
  return update;
}

namespace {

// sums ← from · start + factor · sums, rounded where the lines say.
void add_up(float from, const Matrix& start, float factor, const NewtonSchulzSettings& settings, Matrix& sums) {
  for (Index i = 0; i < sums.size(); ++i) {
    const float first = from * start.data()[i], second = factor * sums.data()[i];
    sums.data()[i] = settings.precision == Precision::fp32 ? first + second
                     : settings.lines == IterationLines::one_call
                         ? nearest_bf16(first + second)
                         : nearest_bf16(nearest_bf16(first) + nearest_bf16(second));
  }
}

void gram(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  compute(chain_square(x.rows(), x.cols(), settings, x.data(), buffers.a.data()), settings.threads);
}

void polynomial(const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  const bool in_bf16 = settings.precision == Precision::bf16;
  const Quintic& q = settings.quintic;
  float *const a = buffers.a.data(), *const b = buffers.b.data(), *const scaled = buffers.scaled.data();
  const Index m = buffers.a.rows();
  if (settings.lines != IterationLines::scaled_first) {
    ChainProduct square = chain_square(m, m, settings, a, b);
    square.right_transposed = false;
    square.leaves_sums = settings.lines == IterationLines::one_call;
    compute(square, settings.threads);
    return add_up(q.b, buffers.a, q.c, settings, buffers.b);
  }
  for (Index i = 0; in_bf16 && i < m * m; ++i) scaled[i] = nearest_bf16(q.c * a[i]);
  compute(chain_polynomial(m, settings, a, scaled, b), settings.threads);
  if (settings.from_the_right) transpose_in_place(buffers.b);
}

void next(const NextProduct& p, const NewtonSchulzSettings& settings) {
  ChainProduct product = chain_next(p.x.rows(), p.x.cols(), p.a, settings, p.x.data(), p.left.data(), p.next.data());
  product.symmetric = p.symmetric;
  const bool once = settings.lines == IterationLines::one_call && settings.precision == Precision::bf16;
  if (!once && p.factor == 1) return compute(product, settings.threads);
  product.addend = nullptr;
  product.leaves_sums = true;
  compute(product, settings.threads);
  add_up(p.a, p.x, p.factor, settings, p.next);
}

}  // namespace

const StepCode chain_code = {"chain", gram, polynomial, next};

}  // namespace muonwalk
