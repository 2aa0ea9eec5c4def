#include "src/numerics/bf16_rounding.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz_steps.hpp"

namespace muonwalk {

void chain_gram(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  ChainProduct square;  // A = X Xᵀ
  square.rows = square.cols = x.rows();
  square.depth = x.cols();
  square.left = square.right = x.data();
  square.right_transposed = true;
  square.symmetric = true;
  square.out = buffers.a.data();
  square.precision = settings.precision;
  compute(square, settings.threads);
}

void chain_update(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  const bool in_bf16 = settings.precision == Precision::bf16;
  const Quintic& q = settings.quintic;
  ChainProduct polynomial;  // B = b A + (c A) A, or b A + c (A A)
  polynomial.rows = polynomial.cols = polynomial.depth = x.rows();
  polynomial.left = polynomial.right = polynomial.addend = buffers.a.data();
  polynomial.addend_scale = q.b;
  polynomial.out = buffers.b.data();
  polynomial.precision = settings.precision;
  if (settings.product_first) {
    polynomial.addend = nullptr;
    polynomial.symmetric = true;
  } else if (in_bf16) {
    // Rounded, c A is symmetric, but its product with A is not: the sum over k of (c A)(i, k) A(k, j) has c A rounded
    // in row i, and that for (j, i) in row j. All of it is computed.
    for (Index i = 0; i < buffers.a.size(); ++i) buffers.scaled.data()[i] = nearest_bf16(q.c * buffers.a.data()[i]);
    polynomial.left = buffers.scaled.data();
  } else {
    polynomial.left_scale = q.c;
    polynomial.symmetric = true;  // up to the last bit of c A, where the half below the diagonal decides
  }
  compute(polynomial, settings.threads);
  if (settings.product_first) {
    for (Index i = 0; i < buffers.a.size(); ++i) {
      const float linear = q.b * buffers.a.data()[i], square_term = q.c * buffers.b.data()[i];
      buffers.b.data()[i] =
          in_bf16 ? nearest_bf16(nearest_bf16(linear) + nearest_bf16(square_term)) : linear + square_term;
    }
  } else if (settings.from_the_right) {
    transpose_in_place(buffers.b);
  }

  ChainProduct update;  // X ← a X + B X
  update.rows = update.depth = x.rows();
  update.cols = x.cols();
  update.left = buffers.b.data();
  update.right = update.addend = x.data();
  update.addend_scale = q.a;
  update.out = buffers.next.data();
  update.precision = settings.precision;
  compute(update, settings.threads);
}

}  // namespace muonwalk
