// Newton–Schulz in Eigen's words, as one would write it on a blackboard:
//
//     A = X Xᵀ        B = b A + (c A) A        X ← a X + B X
//
// What is not on the blackboard are the stripes. Each product is computed 64 or 192 rows of its result at a time: that
// is the work of one thread, it keeps what Eigen copies in the nearer caches, and as A and B are symmetric, a stripe of
// them needs to go only as far as the diagonal. A product's bits depend on its shape. So the stripes depend on the
// matrix and on nothing else, and Eigen itself uses no threads (EIGEN_DONT_PARALLELIZE, in cmake/eigen_files.cmake).
//
// This is compiled once more by newton_schulz_eigen_avx512.cpp, which defines EIGEN_CODE and EIGEN_CODE_NAME.

#include <algorithm>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/eigen_view.hpp"
#include "src/numerics/newton_schulz_steps.hpp"

#ifndef EIGEN_CODE
#define EIGEN_CODE eigen_code_base
#ifdef __AVX2__
#define EIGEN_CODE_NAME "avx2"
#else
#define EIGEN_CODE_NAME "plain"
#endif
#endif

namespace muonwalk {

namespace {

using View = Eigen::Map<EigenMatrix>;
using ConstView = Eigen::Map<const EigenMatrix>;

// Eigen copies all of the right factor for each stripe: of large matrices that costs more than what stripes save.
Index stripe_rows_of(Index all_rows) { return all_rows < 1024 ? 64 : 192; }

// Eigen cuts its products into blocks by the sizes of the caches, and the blocks decide bits: so they are fixed.
void fix_cache_sizes() {
  static const bool fixed = [] {
    Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20);
    return true;
  }();
  static_cast<void>(fixed);
}

// stripe(top, rows) for all rows of a result.
template <class Stripe>
void in_stripes(Index all_rows, int threads, const Stripe& stripe) {
  fix_cache_sizes();
  const Index stripe_rows = stripe_rows_of(all_rows);
  const Index stripes = (all_rows + stripe_rows - 1) / stripe_rows;
  const auto at = [&](Index s) { stripe(s * stripe_rows, std::min(stripe_rows, all_rows - s * stripe_rows)); };
  if (threads <= 1) {
    // No parallel region at all: its pool of threads would not survive a fork of this process.
    for (Index s = 0; s < stripes; ++s) at(s);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (Index s = 0; s < stripes; ++s) at(s);
}

// Copies rows top … top + rows − 1 of a symmetric matrix, left of the diagonal, to the columns above it.
void mirror(View& symmetric, Index top, Index rows) {
  symmetric.block(0, top, top, rows) = symmetric.block(top, 0, rows, top).transpose();
  for (Index i = top; i < top + rows; ++i)
    for (Index j = top; j < i; ++j) symmetric(j, i) = symmetric(i, j);
}

// Every element rounded to bfloat16.
template <class Expression>
auto rounded(const Expression& expression) {
  return expression.unaryExpr([](float value) { return nearest_bf16(value); });
}

void gram(const Matrix& of_x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  if (of_x.empty()) return;
  ConstView x = eigen_view(of_x);
  View a = eigen_view(buffers.a);
  in_stripes(x.rows(), settings.threads, [&](Index top, Index rows) {  // A = X Xᵀ
    auto stripe = a.block(top, 0, rows, top + rows);
    stripe.noalias() = x.middleRows(top, rows) * x.topRows(top + rows).transpose();
    if (settings.precision == Precision::bf16) stripe = rounded(stripe);
    mirror(a, top, rows);
  });
}

// In bf16, rounding c A leaves (c A) A a little asymmetric, so all of it is computed. All else is symmetric.
void polynomial(const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  if (buffers.a.empty()) return;
  View a = eigen_view(buffers.a), b = eigen_view(buffers.b), ca = eigen_view(buffers.scaled);
  const Quintic& q = settings.quintic;
  const bool in_bf16 = settings.precision == Precision::bf16;
  const bool scaled_first = settings.lines == IterationLines::scaled_first;
  in_stripes(a.rows(), settings.threads, [&](Index top, Index rows) {
    const auto all = a.middleRows(top, rows);
    if (in_bf16 && scaled_first) {
      auto stripe = b.middleRows(top, rows);
      ca.middleRows(top, rows) = rounded(q.c * all);
      stripe.noalias() = ca.middleRows(top, rows) * a;
      stripe = rounded(rounded(q.b * all) + rounded(stripe));
      return;
    }
    auto stripe = b.block(top, 0, rows, top + rows);
    const auto half = a.block(top, 0, rows, top + rows);
    if (scaled_first) {  // B = b A + (c A) A
      stripe = q.b * half;
      stripe.noalias() += (q.c * all) * a.leftCols(top + rows);
    } else {  // B = b A + c (A A)
      stripe.noalias() = all * a.leftCols(top + rows);
      if (!in_bf16)
        stripe = q.b * half + q.c * stripe;
      else if (settings.lines == IterationLines::one_call)
        stripe = rounded(q.b * half + q.c * stripe);
      else
        stripe = rounded(rounded(q.b * half) + rounded(q.c * rounded(stripe)));
    }
    mirror(b, top, rows);
  });
  if (in_bf16 && scaled_first && settings.from_the_right) b.transposeInPlace();
}

void next(const NextProduct& p, const NewtonSchulzSettings& settings) {
  if (p.x.empty()) return;
  ConstView x = eigen_view(p.x), left = eigen_view(p.left);
  View result = eigen_view(p.next);
  in_stripes(x.rows(), settings.threads, [&](Index top, Index rows) {  // X ← a X + B X
    const auto multiply = [&](auto stripe, const auto& of_x, const auto& right) {
      if (settings.precision == Precision::fp32) {
        stripe = p.a * of_x;
        if (p.factor != 1)  // with any factor, Eigen computes small products in another way
          stripe.noalias() += (p.factor * left.middleRows(top, rows)) * right;
        else
          stripe.noalias() += left.middleRows(top, rows) * right;
        return;
      }
      stripe.noalias() = left.middleRows(top, rows) * right;
      if (settings.lines == IterationLines::one_call)
        stripe = rounded(p.a * of_x + p.factor * stripe);
      else
        stripe = rounded(rounded(p.a * of_x) + rounded(stripe));
    };
    if (!p.symmetric) return multiply(result.middleRows(top, rows), x.middleRows(top, rows), x);
    multiply(result.block(top, 0, rows, top + rows), x.block(top, 0, rows, top + rows), x.leftCols(top + rows));
    mirror(result, top, rows);
  });
}

}  // namespace

extern const StepCode EIGEN_CODE;
const StepCode EIGEN_CODE = {EIGEN_CODE_NAME, gram, polynomial, next};

}  // namespace muonwalk
