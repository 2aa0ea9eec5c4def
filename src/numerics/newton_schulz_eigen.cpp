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

void update_in_fp32(ConstView x, View a, View b, View next, const NewtonSchulzSettings& settings) {
  const Index m = x.rows();
  const Quintic& q = settings.quintic;
  const int threads = settings.threads;

  if (settings.lines == IterationLines::one_call && q.c == 0)  // there is no B
    return in_stripes(m, threads, [&](Index top, Index rows) {
      next.middleRows(top, rows) = q.a * x.middleRows(top, rows);
      next.middleRows(top, rows).noalias() += (q.b * a.middleRows(top, rows)) * x;
    });

  in_stripes(m, threads, [&](Index top, Index rows) {  // B = b A + (c A) A, or b A + c (A A)
    auto stripe = b.block(top, 0, rows, top + rows);
    if (settings.lines != IterationLines::scaled_first) {
      stripe.noalias() = a.middleRows(top, rows) * a.leftCols(top + rows);
      stripe = q.b * a.block(top, 0, rows, top + rows) + q.c * stripe;
    } else {
      stripe = q.b * a.block(top, 0, rows, top + rows);
      stripe.noalias() += (q.c * a.middleRows(top, rows)) * a.leftCols(top + rows);
    }
    mirror(b, top, rows);
  });

  in_stripes(m, threads, [&](Index top, Index rows) {  // X ← a X + B X
    next.middleRows(top, rows) = q.a * x.middleRows(top, rows);
    next.middleRows(top, rows).noalias() += b.middleRows(top, rows) * x;
  });
}

// Every element rounded to bfloat16.
template <class Expression>
auto rounded(const Expression& expression) {
  return expression.unaryExpr([](float value) { return nearest_bf16(value); });
}

void gram(ConstView x, View a, const NewtonSchulzSettings& settings) {
  in_stripes(x.rows(), settings.threads, [&](Index top, Index rows) {  // A = X Xᵀ
    auto stripe = a.block(top, 0, rows, top + rows);
    stripe.noalias() = x.middleRows(top, rows) * x.topRows(top + rows).transpose();
    if (settings.precision == Precision::bf16) stripe = rounded(stripe);
    mirror(a, top, rows);
  });
}

// Where every line is one call, which rounds once.
void update_with_one_rounding(ConstView x, View a, View b, View next, const NewtonSchulzSettings& settings) {
  const Index m = x.rows();
  const Quintic& q = settings.quintic;
  const bool cubic = q.c == 0;  // then there is no B
  if (!cubic)
    in_stripes(m, settings.threads, [&](Index top, Index rows) {  // B = b A + c A A
      auto half = b.block(top, 0, rows, top + rows);
      half.noalias() = a.middleRows(top, rows) * a.leftCols(top + rows);
      half = rounded(q.b * a.block(top, 0, rows, top + rows) + q.c * half);
      mirror(b, top, rows);
    });
  in_stripes(m, settings.threads, [&](Index top, Index rows) {  // X ← a X + B X, or a X + b A X
    auto stripe = next.middleRows(top, rows);
    stripe.noalias() = (cubic ? a : b).middleRows(top, rows) * x;
    stripe = rounded(q.a * x.middleRows(top, rows) + (cubic ? q.b : 1) * stripe);
  });
}

// Rounding c A leaves (c A) A a little asymmetric, so all of it is computed.
void update_in_bf16(ConstView x, View a, View b, View ca, View next, const NewtonSchulzSettings& settings) {
  const Index m = x.rows();
  const Quintic& q = settings.quintic;
  const int threads = settings.threads;

  in_stripes(m, threads, [&](Index top, Index rows) {  // B = b A + (c A) A, or b A + c (A A)
    if (settings.lines == IterationLines::square_first) {
      auto half = b.block(top, 0, rows, top + rows);
      half.noalias() = a.middleRows(top, rows) * a.leftCols(top + rows);
      half = rounded(rounded(q.b * a.block(top, 0, rows, top + rows)) + rounded(q.c * rounded(half)));
      return mirror(b, top, rows);
    }
    auto stripe = b.middleRows(top, rows);
    ca.middleRows(top, rows) = rounded(q.c * a.middleRows(top, rows));
    stripe.noalias() = ca.middleRows(top, rows) * a;
    stripe = rounded(rounded(q.b * a.middleRows(top, rows)) + rounded(stripe));
  });

  if (settings.from_the_right && settings.lines == IterationLines::scaled_first) b.transposeInPlace();
  in_stripes(m, threads, [&](Index top, Index rows) {  // X ← a X + B X
    auto stripe = next.middleRows(top, rows);
    stripe.noalias() = b.middleRows(top, rows) * x;
    stripe = rounded(rounded(q.a * x.middleRows(top, rows)) + rounded(stripe));
  });
}

void gram(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  if (x.empty()) return;
  fix_cache_sizes();
  gram(eigen_view(x), eigen_view(buffers.a), settings);
}

void update(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers) {
  if (x.empty()) return;
  fix_cache_sizes();
  View a = eigen_view(buffers.a), b = eigen_view(buffers.b), next = eigen_view(buffers.next);
  if (settings.precision == Precision::fp32) {
    update_in_fp32(eigen_view(x), a, b, next, settings);
  } else if (settings.lines == IterationLines::one_call) {
    update_with_one_rounding(eigen_view(x), a, b, next, settings);
  } else {
    update_in_bf16(eigen_view(x), a, b, eigen_view(buffers.scaled), next, settings);
  }
}

}  // namespace

extern const EigenCode EIGEN_CODE;
const EigenCode EIGEN_CODE = {EIGEN_CODE_NAME, gram, update};

}  // namespace muonwalk
