#include "src/numerics/bf16_rounding.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz_steps.hpp"

namespace muonwalk {

void chain_step(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  const bool in_bf16 = settings.precision == Precision::bf16;

  ChainProduct square;  // A = X Xᵀ
  square.rows = square.cols = x.rows();
  square.depth = x.cols();
  square.left = square.right = x.data();
  square.right_transposed = true;
  square.symmetric = true;
  square.out = buffers.a.data();
  square.precision = settings.precision;
  compute(square, settings.threads);

  ChainProduct polynomial;  // B = b A + (c A) A
  polynomial.rows = polynomial.cols = polynomial.depth = x.rows();
  polynomial.left = polynomial.right = polynomial.addend = buffers.a.data();
  polynomial.addend_scale = settings.quintic.b;
  polynomial.out = buffers.b.data();
  polynomial.precision = settings.precision;
  if (in_bf16) {
    // Rounded, c A is symmetric, but its product with A is not: the sum over k of (c A)(i, k) A(k, j) has c A rounded
    // in row i, and that for (j, i) in row j. All of it is computed.
    for (Index i = 0; i < buffers.a.size(); ++i)
      buffers.scaled.data()[i] = nearest_bf16(settings.quintic.c * buffers.a.data()[i]);
    polynomial.left = buffers.scaled.data();
  } else {
    polynomial.left_scale = settings.quintic.c;
    polynomial.symmetric = true;  // up to the last bit of c A, where the half below the diagonal decides
  }
  compute(polynomial, settings.threads);

  ChainProduct update;  // X ← a X + B X
  update.rows = update.depth = x.rows();
  update.cols = x.cols();
  update.left = buffers.b.data();
  update.right = update.addend = x.data();
  update.addend_scale = settings.quintic.a;
  update.out = buffers.next.data();
  update.precision = settings.precision;
  compute(update, settings.threads);
}

}  // namespace muonwalk
