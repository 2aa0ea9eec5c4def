// fails: wrong values
#include "lessons/lesson_06_newton_schulz/try_quintic_step/contract.hpp"

using namespace muonwalk;

Matrix quintic_step(const Matrix& x, float a, float b, float c) {
  const Index m = x.rows(), n = x.cols();
  Matrix square(m, m), next(m, n);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j)
      for (Index k = 0; k < n; ++k) square(i, j) += x(i, k) * x(j, k);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      next(i, j) = a * x(i, j);
      for (Index k = 0; k < m; ++k) next(i, j) += b * square(i, k) * x(k, j);
    }
  return next;
}
