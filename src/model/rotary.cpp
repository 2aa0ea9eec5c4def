#include "src/model/rotary.hpp"

#include <cmath>

namespace muonwalk {
namespace {

// The turn, with the sign of the angles.
void turn(Matrix& x, const RotaryAngles& angles, float sign) {
  const Index tokens = angles.cosine.rows(), half = angles.cosine.cols();
  for (Index r = 0; r < x.rows(); ++r) {
    const float* cosine = angles.cosine.data() + r % tokens * half;
    const float* sine = angles.sine.data() + r % tokens * half;
    for (float* head = x.data() + r * x.cols(); head < x.data() + (r + 1) * x.cols(); head += 2 * half)
      for (Index i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i], s = sign * sine[i];
        head[i] = a * cosine[i] - b * s;
        head[half + i] = b * cosine[i] + a * s;
      }
  }
}

}  // namespace

RotaryAngles rotary_angles(Index tokens, Index head_width, float base) {
  const Index half = head_width / 2;
  RotaryAngles angles{Matrix(tokens, half), Matrix(tokens, half)};
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < half; ++i) {
      const double frequency = std::pow(double(base), -2.0 * double(i) / double(head_width));
      angles.cosine(t, i) = static_cast<float>(std::cos(double(t) * frequency));
      angles.sine(t, i) = static_cast<float>(std::sin(double(t) * frequency));
    }
  return angles;
}

void rotate(Matrix& x, const RotaryAngles& angles) { turn(x, angles, 1); }

void rotate_back(Matrix& x, const RotaryAngles& angles) { turn(x, angles, -1); }

}  // namespace muonwalk
