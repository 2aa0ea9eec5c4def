#include "src/optim/adamw.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "src/numerics/philox.hpp"

using namespace muonwalk;

TEST_CASE("adamw: ten steps follow the formula of the paper, computed in double precision") {
  constexpr Index kCount = 37;
  for (const AdamWSettings& settings : {AdamWSettings(), AdamWSettings{0.1f, 0.8f, 0.95f, 1e-6f, 0.0f}}) {
    Matrix w = random_matrix({1, 0}, 1, kCount), m(1, kCount), v(1, kCount);
    std::vector<double> dw(w.flat().begin(), w.flat().end()), dm(kCount), dv(kCount);
    for (int t = 1; t <= 10; ++t) {
      const Matrix g = random_matrix({1, static_cast<std::uint64_t>(t)}, 1, kCount);
      adamw(w.data(), g.data(), m.data(), v.data(), kCount, t, settings);
      for (Index i = 0; i < kCount; ++i) {
        const double grad = g(0, i), b1 = settings.beta1, b2 = settings.beta2;
        dm[i] = b1 * dm[i] + (1 - b1) * grad;
        dv[i] = b2 * dv[i] + (1 - b2) * grad * grad;
        const double step_size = settings.lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
        dw[i] = dw[i] * (1 - double(settings.lr) * settings.weight_decay) -
                step_size * dm[i] / (std::sqrt(dv[i]) + settings.epsilon);
        // Ten float32 steps, each off by a few parts in 2^24 of numbers of size 1.
        CHECK(std::abs(w(0, i) - dw[i]) < 2e-5);
      }
    }
  }
}

TEST_CASE("adamw: the first step moves every element by the learning rate against its gradient's sign") {
  AdamWSettings settings;
  settings.weight_decay = 0;
  Matrix w(1, 4), m(1, 4), v(1, 4), g(1, 4);
  const float gradients[] = {3, -0.01f, 100, -7};
  for (Index i = 0; i < 4; ++i) g(0, i) = gradients[i];
  adamw(w.data(), g.data(), m.data(), v.data(), 4, 1, settings);
  for (Index i = 0; i < 4; ++i) CHECK(std::abs(w(0, i) + std::copysign(settings.lr, g(0, i))) < 1e-6);
}

TEST_CASE("adamw: steps count from 1") {
  float w = 1, g = 1, m = 0, v = 0;
  CHECK_THROWS_AS(adamw(&w, &g, &m, &v, 1, 0, AdamWSettings()), std::invalid_argument);
}

TEST_CASE("adamw: a state takes the steps of its three runs, bit for bit") {
  const Flat start = random_matrix({1, 0}, 1, 9).flat();
  AdamWState state = initial_adamw_state(start);
  Flat w = start, m(9), v(9);
  for (int t = 1; t <= 3; ++t) {
    const Flat g = random_matrix({1, static_cast<std::uint64_t>(t)}, 1, 9).flat();
    adamw(w.data(), g.data(), m.data(), v.data(), 9, t, AdamWSettings());
    adamw(state, g, t, AdamWSettings());
  }
  CHECK(std::memcmp(w.data(), state.weights.data(), 9 * sizeof(float)) == 0);
  CHECK(std::memcmp(m.data(), state.first_moment.data(), 9 * sizeof(float)) == 0);
  CHECK(std::memcmp(v.data(), state.second_moment.data(), 9 * sizeof(float)) == 0);
  CHECK_THROWS_AS(adamw(state, Flat(8), 4, AdamWSettings()), std::invalid_argument);
  for (Flat AdamWState::*part : {&AdamWState::weights, &AdamWState::first_moment, &AdamWState::second_moment})
    for (const std::size_t size : {8, 10}) {
      AdamWState other = state;
      (other.*part).resize(size);
      CHECK_THROWS_AS(adamw(other, Flat(9), 4, AdamWSettings()), std::invalid_argument);
    }
}
