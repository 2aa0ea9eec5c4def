#include "src/optim/adamw.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

#include "src/numerics/philox.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

// The next number of a golden file.
float next(std::istream& in) {
  std::uint32_t bits = 0;
  in >> std::hex >> bits >> std::dec;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Flat next(std::istream& in, Index count) {
  Flat values(static_cast<std::size_t>(count));
  for (float& value : values) value = next(in);
  return values;
}

}  // namespace

// PyTorch adds a product to a number with one rounding (FMA), where ours are two; nothing else separates the two.
// Measured over 12 steps, in units of the last place of the larger of weight and learning rate: 0 at the usual settings
// and 5 at the others, where the learning rate is large. The other form is 150,000 such units away.
TEST_CASE("adamw: with ε outside of the corrected root, it is torch.optim.AdamW to the last digits") {
  for (const char* name : {"usual", "other"}) {
    std::ifstream in(std::string(MUONWALK_GOLDEN_DIR) + "/adamw_" + name + ".txt");
    int steps = 0;
    Index count = 0;
    in >> steps >> count;
    REQUIRE(count == 20);
    AdamWSettings settings;
    for (float* knob : {&settings.lr, &settings.beta1, &settings.beta2, &settings.epsilon, &settings.weight_decay})
      *knob = next(in);
    AdamWState other = initial_adamw_state(next(in, count)), torch = other;
    double farthest = 0, other_farthest = 0;
    for (int t = 1; t <= steps; ++t) {
      const Flat gradient = next(in, count), expected = next(in, count);
      settings.epsilon_stands = Epsilon::on_uncorrected_root;
      adamw(other, gradient, t, settings);
      settings.epsilon_stands = Epsilon::outside_corrected_root;
      adamw(torch, gradient, t, settings);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const float size = std::max(std::abs(expected[i]), settings.lr);
        const double place = static_cast<double>(std::nextafter(size, 10.0f)) - size;
        farthest = std::max(farthest, std::abs(static_cast<double>(torch.weights[i]) - expected[i]) / place);
        other_farthest =
            std::max(other_farthest, std::abs(static_cast<double>(other.weights[i]) - expected[i]) / place);
      }
    }
    REQUIRE(in.good());
    CHECK(farthest <= 8);
    CHECK(other_farthest > 100000);
  }
}

TEST_CASE("adamw: settings are taken up to both ends of what makes sense, and refused by name beyond") {
  struct Knob {
    const char* option;
    float AdamWSettings::*member;
    float smallest, largest;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const float below_one = std::nextafter(1.0f, 0.0f);
  CHECK(usage_error([] { require_sensible(AdamWSettings()); }) == "(no UsageError)");
  for (const Knob& knob :
       {Knob{"lr", &AdamWSettings::lr, 0, 1e6f}, Knob{"decay", &AdamWSettings::weight_decay, 0, 1e6f},
        Knob{"beta1", &AdamWSettings::beta1, 0, below_one}, Knob{"beta2", &AdamWSettings::beta2, 0, below_one},
        Knob{"epsilon", &AdamWSettings::epsilon, 1e-30f, 1e6f}}) {
    CAPTURE(knob.option);
    AdamWSettings settings;
    const auto refusal = [&](float value) {
      settings.*knob.member = value;
      return usage_error([&] { require_sensible(settings); });
    };
    for (const float end : {knob.smallest, knob.largest}) CHECK(refusal(end) == "(no UsageError)");
    const float beyond = knob.smallest == 0 ? -0.5f : 0.0f;
    for (const float value : {beyond, std::nextafter(knob.largest, infinity), infinity, nan})
      CHECK(refusal(value).rfind(fmt::format("--adamw-{} {:g} makes no sense", knob.option, value), 0) == 0);
  }
}

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

TEST_CASE("adamw: steps count from 1") {
  float w = 1, g = 1, m = 0, v = 0;
  CHECK_THROWS_WITH_AS(adamw(&w, &g, &m, &v, 1, 0, AdamWSettings()),
                       "AdamW counts its steps from 1; the first call is step 1", std::invalid_argument);
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
  CHECK_THROWS_WITH_AS(adamw(state, Flat(8), 4, AdamWSettings()),
                       "AdamW takes a gradient and two moments of as many elements as there are weights",
                       std::invalid_argument);
  for (Flat AdamWState::*part : {&AdamWState::weights, &AdamWState::first_moment, &AdamWState::second_moment})
    for (const std::size_t size : {8, 10}) {
      AdamWState other = state;
      (other.*part).resize(size);
      CHECK_THROWS_AS(adamw(other, Flat(9), 4, AdamWSettings()), std::invalid_argument);
    }
}
