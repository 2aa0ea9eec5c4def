// The elementwise loops: every default, the switch between two roundings at one half, and that nothing behind the last
// element is touched; and the tables of recipes and coefficients.
#include <doctest/doctest.h>

#include <cmath>

#include "src/optim/adamw.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/serial_recipe.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;

TEST_CASE("AdamWSettings: the defaults") {
  const AdamWSettings s;
  CHECK(s.lr == 1e-3f);
  CHECK(s.beta1 == 0.9f);
  CHECK(s.beta2 == 0.999f);
  CHECK(s.epsilon == 1e-8f);
  CHECK(s.weight_decay == 0.1f);
  CHECK(s.epsilon_stands == Epsilon::on_uncorrected_root);
  CHECK_FALSE(s.summed_gradients);
}

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
      const float near_start = start + weight * (end - start), near_end = end - (end - start) * (1 - weight);
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
  for (const bool subtracts : {false, true})
    for (const bool rounds : {false, true})
      for (const Precision precision : {Precision::fp32, Precision::bf16})
        for (const Scaling scaling : {Scaling::once, Scaling::twice, Scaling::thrice}) {
          s.arithmetic.decay_subtracts = subtracts;
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
          const float decayed = subtracts ? start - decay * start : start * (1 - decay);
          Flat weights(3, start);
          const Flat orthogonal(3, o);
          apply(weights.data(), orthogonal.data(), 2, {5, 12}, s);
          CHECK(weights[0] == decayed - update);
          CHECK(weights[1] == weights[0]);
          CHECK(weights[2] == start);
          CHECK(update_squares(orthogonal.data(), 2, {5, 12}, s) == 2 * (static_cast<double>(update) * update));
          CHECK(update_squares(orthogonal.data(), 0, {5, 12}, s) == 0);
        }
}

TEST_CASE("recipes: their names and where they were read, and what their lines are about") {
  std::string whose, about;
  for (const Recipe& each : recipes()) whose += each.name + ": " + each.whose + "\n";
  CHECK("\n" + whose == R"(
moonshot: MoonshotAI/Moonlight, examples/toy_train.py
kellerjordan: KellerJordan/Muon, muon.py
torch: PyTorch, torch/optim/_muon.py
emerging: NVIDIA-NeMo/Emerging-Optimizers, orthogonalized_optimizers
dion: microsoft/dion, dion/muon.py
)");
  for (const RecipeLine& each : recipe_lines()) about += each.about + "; ";
  CHECK(about ==
        "decay; momentum; Nesterov; divides by; to bf16; coefficients; square term; tall matrix; scale; multiplied; ");
  MuonSettings none;
  none.arithmetic.scale = Scale::none;
  CHECK(recipe_lines()[8].text(none) == "1");
}

TEST_CASE("coefficients: as they were published, with a step for each") {
  const auto listed = [](const std::string& name) {
    MuonSettings settings;
    settings.newton_schulz.steps = 77;
    take_coefficients(settings, name);
    CHECK(settings.newton_schulz.steps == static_cast<int>(settings.newton_schulz.schedule.size()));
    std::vector<float> numbers;
    for (const Quintic& q : settings.newton_schulz.schedule) numbers.insert(numbers.end(), {q.a, q.b, q.c});
    return numbers;
  };
  const auto repeated = [](int times, const std::vector<float>& numbers, std::vector<float> all = {}) {
    for (; times > 0; --times) all.insert(all.end(), numbers.begin(), numbers.end());
    return all;
  };
  const std::vector<float> jordan = {3.4445f, -4.7750f, 2.0315f};
  CHECK(listed("simple") == repeated(5, jordan));
  CHECK(listed("quintic") == std::vector<float>{4.0848f, -6.8946f, 2.9270f, 3.9505f, -6.3029f, 2.6377f, 3.7418f,
                                                -5.5913f, 2.3037f, 2.8769f, -3.1427f, 1.2046f, 2.8366f, -3.0525f,
                                                1.2012f});
  CHECK(listed("polar_express") == std::vector<float>{8.156554524902461f, -22.48329292557795f, 15.878769915207462f,
                                                      4.042929935166739f, -2.808917465908714f, 0.5000178451051316f,
                                                      3.8916678022926607f, -2.772484153217685f, 0.5060648178503393f,
                                                      3.285753657755655f, -2.3681294933425376f, 0.46449024233003106f,
                                                      2.3465413258596377f, -1.7097828382687081f, 0.42323551169305323f});
  CHECK(listed("aol") == std::vector<float>{4.0098f, -7.0585f, 2.4635f, 3.4585f, -5.5479f, 2.5959f, 2.7573f, -3.2939f,
                                            1.4254f, 2.7215f, -3.0494f, 1.3169f});
  CHECK(listed("deepseekv4") == repeated(2, {2.0f, -1.5f, 0.5f}, repeated(8, jordan)));
  std::string whose;
  for (const CoefficientSet& each : coefficient_sets()) whose += each.name + ": " + each.whose + "\n";
  CHECK("\n" + whose == R"(
simple: Keller Jordan, "Muon", 2024
quintic: You Jiacheng, in modded-nanogpt
polar_express: Amsel et al., arXiv:2505.16932, with a cushion of 0.02 as in modded-nanogpt and dion
aol: thib-s/flash-newton-schulz, in Emerging-Optimizers
deepseekv4: DeepSeek-V4, in microsoft/dion#67
)");
}
