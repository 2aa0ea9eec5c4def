#include "src/optim/muon_settings.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/steps.hpp"

using namespace muonwalk;

namespace {

// The sentence with which the settings are refused; empty when they are not.
std::string refusal(const MuonSettings& settings) {
  try {
    require_sensible(settings);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("require_sensible: both ends of every range are accepted, and what lies outside is refused by name") {
  const float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float below_1 = std::nextafter(1.0f, 0.0f);
  struct Knob {
    std::string option;
    void (*set)(MuonSettings&, float);
    float largest;
  };
  CHECK(refusal(MuonSettings()).empty());
  const std::vector<Knob> knobs = {{"--lr", [](MuonSettings& s, float to) { s.lr = to; }, 1e6f},
                                   {"--rms", [](MuonSettings& s, float to) { s.rms = to; }, 1e6f},
                                   {"--weight-decay", [](MuonSettings& s, float to) { s.weight_decay = to; }, 1e6f},
                                   {"--momentum", [](MuonSettings& s, float to) { s.momentum = to; }, below_1},
                                   {"--beta2", [](MuonSettings& s, float to) { s.second_moment.beta2 = to; }, below_1}};
  for (const Knob& knob : knobs) {
    MuonSettings settings;
    for (const float fits : {0.0f, knob.largest}) {
      knob.set(settings, fits);
      CHECK(refusal(settings).empty());
    }
    for (const float wrong : {-1.0f, infinite, nan, std::nextafter(knob.largest, infinite)}) {
      knob.set(settings, wrong);
      CHECK_MESSAGE(refusal(settings).rfind(fmt::format("{} {:g} makes no sense", knob.option, wrong), 0) == 0,
                    refusal(settings));
    }
  }
  for (const int steps : {-1, 0, 100, 101}) {
    MuonSettings settings;
    settings.newton_schulz.steps = steps;
    const std::string sentence = fmt::format("--ns-steps {} makes no sense", steps);
    CHECK((refusal(settings).rfind(sentence, 0) == 0) == (steps < 0 || steps > 100));
  }
}

TEST_CASE("MuonSettings: the defaults are those of the proof of concept's own test") {
  const MuonSettings s;
  CHECK(std::array{s.lr, s.weight_decay, s.rms} == std::array{0.1f, 0.1f, 0.2f});
  CHECK(s.momentum == 0.9);
  CHECK(s.nesterov);
  CHECK(s.newton_schulz.steps == 5);
  CHECK(s.newton_schulz.precision == Precision::fp32);
  CHECK(s.gather == Gather::buckets);
  CHECK(s.arithmetic.scale == Scale::matched_rms);
}

TEST_CASE("MuonSettings: updates travel in bf16 where Newton–Schulz rounds them anyway, and nobody asked otherwise") {
  for (const bool bf16 : {false, true})
    for (const bool round_first : {false, true})
      for (const bool unrounded : {false, true}) {
        MuonSettings s;
        s.newton_schulz.precision = bf16 ? Precision::bf16 : Precision::fp32;
        s.newton_schulz.normalization.round_first = round_first;
        s.gather_unrounded = unrounded;
        CHECK((s.gathered() == Precision::bf16) == (bf16 && round_first && !unrounded));
      }
}

TEST_CASE("scale: each word is of its own scale, and the factors multiply to it however many they are") {
  const std::vector<std::pair<Scale, std::string>> words = {{Scale::matched_rms, "matched"},
                                                            {Scale::largest, "largest"},
                                                            {Scale::tall, "tall"},
                                                            {Scale::ratio, "ratio"},
                                                            {Scale::none, "none"}};
  // Of 36 × 4 and its transpose; lr 0.5 and rms 0.25, which every product holds exactly.
  const std::vector<std::pair<float, float>> roots = {{6, 6}, {6, 6}, {3, 1}, {3, 1.0f / 3}, {1, 1}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& [scale, word] = words[i];
    CAPTURE(word);
    CHECK(std::string(scale_name(scale)) == word);
    CHECK(parse_scale(word) == scale);
    CHECK(shape_scale({36, 4}, scale) == roots[i].first);
    CHECK(shape_scale({4, 36}, scale) == roots[i].second);
    MuonSettings s;
    s.lr = 0.5f;
    s.rms = 0.25f;
    s.arithmetic.scale = scale;
    const float root = roots[i].first, rms = scale == Scale::matched_rms ? 0.25f : 1.0f;
    CHECK(update_scale({36, 4}, s) == 0.5f * rms * root);
    const auto factors = [&](Scaling scaling) {
      s.arithmetic.scaling = scaling;
      const std::array<float, 3> all = update_factors({36, 4}, s);
      return std::vector<float>(all.begin(), all.end());
    };
    CHECK(factors(Scaling::once) == std::vector<float>{0.5f * rms * root, 1, 1});
    CHECK(factors(Scaling::twice) == std::vector<float>{rms * root, 0.5f, 1});
    CHECK(factors(Scaling::thrice) == std::vector<float>{root, rms, 0.5f});
  }
}
