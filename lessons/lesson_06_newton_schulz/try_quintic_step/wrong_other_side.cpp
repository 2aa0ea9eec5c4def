// fails: right bits, but too much memory
#include "lessons/lesson_06_newton_schulz/try_quintic_step/contract.hpp"

using namespace muonwalk;

Matrix quintic_step(const Matrix& x, float a, float b, float c) {
  // X B with B of Xᵀ X: as right, and n × n.
  const Matrix turned = x.transposed();
  Matrix square, fourth, more, next;
  multiply(turned, x, square);
  multiply(square, square, fourth);
  for (Index i = 0; i < square.size(); ++i) square.flat()[i] = b * square.flat()[i] + c * fourth.flat()[i];
  multiply(x, square, more);
  next = x;
  for (Index i = 0; i < next.size(); ++i) next.flat()[i] = a * x.flat()[i] + more.flat()[i];
  return next;
}
