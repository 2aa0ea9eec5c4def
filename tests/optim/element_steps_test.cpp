// The elementwise loops: every default, the switch between two roundings at one half, and that nothing behind the last
// element is touched; and the tables of recipes and coefficients.
#include <doctest/doctest.h>

#include <cmath>

#include "src/optim/adamw.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;

TEST_CASE("adamw: touches as many elements as it is told to, and no element behind them") {
  for (const Index count : {0, 1, 5}) {
    Flat w(7, 2.0f), m(7, 3.0f), v(7, 4.0f);
    const Flat g(7, 5.0f);
    adamw(w.data(), g.data(), m.data(), v.data(), count, 2, AdamWSettings());
    for (std::size_t i = 0; i < 7; ++i) {
      CAPTURE(i);
      const bool inside = static_cast<Index>(i) < count;
      CHECK((w[i] != 2.0f) == inside);
      CHECK((m[i] != 3.0f) == inside);
      CHECK((v[i] != 4.0f) == inside);
    }
  }
}

TEST_CASE("momentum: a mean goes from the nearer of two numbers, and at one half from the further one, as torch.lerp") {
  // Half way between these, the two roundings differ.
  const float from = 0.303185940f, to = 0.00110430911f, other = -0.731271505f, further = 0.135902002f;
  CHECK(from + 0.5f * (to - from) != to - (to - from) * 0.5f);
  CHECK(other + 0.5f * (further - other) != further - (further - other) * 0.5f);
  for (const float mu : {0.25f, 0.5f, 0.75f, 0.9f}) {
    const auto lerp = [](float start, float end, float weight) {
      const float near_start = std::fma(weight, end - start, start), near_end = std::fma(weight - 1, end - start, end);
      return weight < 0.5f ? near_start : near_end;
    };
    MuonSettings settings;
    settings.arithmetic.lerp = true;
    settings.momentum = mu;
    for (const bool nesterov : {false, true})
      for (const auto& [m0, g] : {std::pair<float, float>(from, to), {to, from}, {other, further}, {further, other}}) {
        settings.nesterov = nesterov;
        float m = m0, update = 0;
        momentum(&g, &m, 1, settings, &update);
        const float expected = lerp(m0, g, 1 - mu);
        CHECK(m == expected);
        CHECK(update == (nesterov ? lerp(g, expected, mu) : expected));

        Matrix w(1, 1), serial_m(1, 1, Flat{m0});
        recipe_step(w, serial_m, Matrix(1, 1, Flat{g}), settings, "w");
        CHECK(serial_m(0, 0) == expected);
      }
  }
}

TEST_CASE(
    "apply, update_squares: in each number of multiplications and both decays, rounded in bf16 where that is asked") {
  MuonSettings s;
  s.lr = 0.3f;
  s.rms = 0.7f;
  s.weight_decay = 0.9f;
  const float start = 1.7f, o = 0.31f, root = std::sqrt(12.0f), decay = s.lr * s.weight_decay;
  const auto nearest = [](float value) { return static_cast<float>(bfloat16(value)); };
  for (const Decay decay_of : {Decay::scales, Decay::subtracts, Decay::cautious})
    for (const bool rounds : {false, true})
      for (const Precision precision : {Precision::fp32, Precision::bf16})
        for (const Scaling scaling : {Scaling::once, Scaling::twice, Scaling::thrice}) {
          s.arithmetic.decay = decay_of;
          s.arithmetic.round_scaled = rounds;
          s.newton_schulz.precision = precision;
          s.arithmetic.scaling = scaling;
          float first = s.lr * s.rms * root * o, update = 0;
          if (scaling == Scaling::twice) first = s.rms * root * o;
          if (scaling == Scaling::thrice) first = root * o;
          if (rounds && precision == Precision::bf16) first = nearest(first);
          update = first;
          if (scaling == Scaling::twice) update = first * s.lr;
          if (scaling == Scaling::thrice) update = first * s.rms * s.lr;
          const float decayed = decay_of == Decay::scales ? start * (1 - decay) : start - decay * start;
          Flat weights(3, start);
          const Flat orthogonal(3, o);
          apply(weights.data(), orthogonal.data(), 2, {5, 12}, s);
          CHECK(weights[0] == decayed - update);
          CHECK(weights[1] == weights[0]);
          CHECK(weights[2] == start);
          CHECK(update_squares(orthogonal.data(), 2, {5, 12}, s) == 2 * (static_cast<double>(update) * update));
          CHECK(update_squares(orthogonal.data(), 0, {5, 12}, s) == 0);
          // The other way, a cautious decay leaves the weight alone; at zero it doesn't.
          Flat against = {start, 0.0f};
          const Flat other = {-o, -o};
          apply(against.data(), other.data(), 2, {5, 12}, s);
          CHECK(against[0] == (decay_of == Decay::cautious ? start : decayed) + update);
          CHECK(against[1] == update);
          // Where torch.add does both, the last product and the sum round once.
          if (rounds && scaling == Scaling::once) continue;
          s.arithmetic.fused = true;
          Flat at_once(1, start);
          apply(at_once.data(), orthogonal.data(), 1, {5, 12}, s);
          s.arithmetic.fused = false;
          const float kept = decay_of == Decay::scales ? decayed : std::fma(-decay, start, start);
          const float factor = scaling == Scaling::once ? s.lr * s.rms * root : s.lr;
          const float before = scaling == Scaling::once ? o : scaling == Scaling::twice ? first : first * s.rms;
          CHECK(at_once[0] == std::fma(-factor, before, kept));
        }
}
