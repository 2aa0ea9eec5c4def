// The reference itself, against the formulas of the paper in double precision and against its own rules.
#include "src/optim/serial_muon.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "src/errors.hpp"
#include "src/numerics/philox.hpp"

using namespace muonwalk;

namespace {

std::string refusal(SerialMuon& muon, const std::vector<std::vector<Matrix>>& gradients) {
  try {
    muon.step(gradients);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("SerialMuon: two steps follow the formulas in double precision, with and without Nesterov") {
  for (const bool nesterov : {true, false}) {
    MuonSettings settings;
    settings.nesterov = nesterov;
    const Matrix start = random_matrix({1, 0}, 5, 9);
    SerialMuon muon({{"w", start}}, settings);

    std::vector<double> w(start.flat().begin(), start.flat().end());
    std::vector<double> m(w.size(), 0.0);
    for (int step = 0; step < 2; ++step) {
      const Matrix left = random_matrix({2, static_cast<std::uint64_t>(2 * step)}, 5, 9);
      const Matrix right = random_matrix({2, static_cast<std::uint64_t>(2 * step + 1)}, 5, 9);
      muon.step({{left}, {right}});

      Matrix u(5, 9);
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double g = static_cast<double>(left.flat()[i]) + right.flat()[i];
        m[i] = 0.9 * m[i] + g;
        u.flat()[i] = static_cast<float>(nesterov ? g + 0.9 * m[i] : m[i]);
      }
      const Matrix o = newton_schulz(u);
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = w[i] * (1 - 0.1 * 0.1) - 0.1 * 0.2 * 3 * o.flat()[i];
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
      CHECK(muon.parameters()[0].matrix.flat()[i] == doctest::Approx(w[i]).epsilon(1e-4));
      CHECK(muon.momentum()[0].matrix.flat()[i] == doctest::Approx(m[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("SerialMuon: bf16 rounds the update before Newton–Schulz and keeps weights and momentum in float32") {
  MuonSettings settings;
  settings.newton_schulz.precision = Precision::bf16;
  const Matrix gradient = random_matrix({3, 0}, 4, 6);
  SerialMuon muon({{"w", Matrix(4, 6)}}, settings);
  muon.step({{gradient}});

  Matrix u(4, 6);
  for (Index i = 0; i < u.size(); ++i) {
    const float again = 0.9f * gradient.data()[i];
    u.data()[i] = static_cast<float>(bfloat16(gradient.data()[i] + again));
  }
  NewtonSchulzSettings ns;
  ns.precision = Precision::bf16;
  const Matrix o = newton_schulz(u, ns);
  for (Index i = 0; i < u.size(); ++i) {
    CHECK(muon.parameters()[0].matrix.data()[i] == 0.0f - update_scale({4, 6}, settings) * o.data()[i]);
  }
  CHECK(same_bits(muon.momentum()[0].matrix, gradient));
}

TEST_CASE("SerialMuon: a gradient that is missing, of another shape or not finite is refused and nothing changes") {
  const Matrix start = random_matrix({5, 0}, 2, 3);
  SerialMuon muon({{"first", start}, {"second", start}}, {});
  const Matrix good = random_matrix({5, 1}, 2, 3);
  Matrix nan = good;
  nan(1, 2) = std::numeric_limits<float>::quiet_NaN();
  Matrix infinite = good;
  infinite(0, 1) = std::numeric_limits<float>::infinity();

  CHECK(refusal(muon, {}) == "A step was asked for without a gradient; give at least one leaf.");
  CHECK(refusal(muon, {{good, good}, {good}}) ==
        "Leaf 1 holds the gradients of 1 parameters, but there are 2; give one gradient per parameter.");
  CHECK(refusal(muon, {{good, good, good}}) ==
        "Leaf 0 holds the gradients of 3 parameters, but there are 2; give one gradient per parameter.");
  CHECK(refusal(muon, {{good, good}, {good, Matrix(3, 2)}}) ==
        "Leaf 1 of the gradient of parameter \"second\" is 3 × 2, but the parameter is 2 × 3; give a gradient of the "
        "parameter's shape.");
  for (const auto& [rows, cols] : {std::pair<Index, Index>(2, 2), {2, 4}, {1, 3}, {3, 3}, {1, 6}, {0, 3}, {2, 0}})
    CHECK(refusal(muon, {{Matrix(rows, cols), good}}) ==
          "Leaf 0 of the gradient of parameter \"first\" is " + shape_text(rows, cols) +
              ", but the parameter is 2 × 3; give a gradient of the parameter's shape.");
  const std::string end = ", from which no step can be made; give finite gradients.";
  CHECK(refusal(muon, {{good, good}, {good, nan}}) ==
        "Leaf 1 of the gradient of parameter \"second\" holds a NaN at row 1, column 2" + end);
  // In the words of the reference, not in those of Newton–Schulz, which would come too late.
  CHECK(refusal(muon, {{infinite, good}}) ==
        "Leaf 0 of the gradient of parameter \"first\" holds an infinity at row 0, column 1" + end);
  for (const NamedMatrix& parameter : muon.parameters()) CHECK(same_bits(parameter.matrix, start));
}
