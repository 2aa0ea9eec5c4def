#include "src/optim/muon_settings.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/errors.hpp"
#include "src/optim/steps.hpp"
#include "src/optim/tp_way.hpp"

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

template <class Knob>
std::string refusal(Knob MuonSettings::*knob, Knob value) {
  MuonSettings settings;
  settings.*knob = value;
  return refusal(settings);
}

}  // namespace

TEST_CASE("require_sensible: the defaults and the ends of every range are accepted") {
  CHECK(refusal(MuonSettings()).empty());
  for (float MuonSettings::*knob : {&MuonSettings::lr, &MuonSettings::weight_decay, &MuonSettings::rms})
    for (const float end : {0.0f, 1e6f}) CHECK(refusal(knob, end).empty());
  for (const float end : {0.0f, std::nextafter(1.0f, 0.0f)}) CHECK(refusal(&MuonSettings::momentum, end).empty());
  CHECK(refusal(&MuonSettings::ns_steps, 0).empty());
  CHECK(refusal(&MuonSettings::ns_steps, 100).empty());
}

TEST_CASE("require_sensible: what makes no sense is refused with the option, the value and what works") {
  const float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<float, std::string>> wrong = {
      {-1.0f, "-1"}, {infinite, "inf"}, {nan, "nan"}, {1000001.0f, "1e+06"}};
  for (const auto& [value, text] : wrong) {
    const auto sentence = [&text = text](const std::string& option, const std::string& takes) {
      return option + " " + text + " makes no sense for Muon; it takes " + takes;
    };
    CHECK(refusal(&MuonSettings::lr, value) == sentence("--lr", "a number of at least 0, for example 0.1"));
    CHECK(refusal(&MuonSettings::momentum, value) == sentence("--momentum", "a number from 0 to below 1"));
    CHECK(refusal(&MuonSettings::weight_decay, value) == sentence("--weight-decay", "a number of at least 0"));
    CHECK(refusal(&MuonSettings::rms, value) == sentence("--rms", "a number of at least 0, for example 0.2"));
  }
  CHECK(refusal(&MuonSettings::momentum, 1.0f) ==
        "--momentum 1 makes no sense for Muon; it takes a number from 0 to below 1");
  CHECK(refusal(&MuonSettings::ns_steps, -1) ==
        "--ns-steps -1 makes no sense for Muon; it takes a whole number from 0 to 100");
  CHECK_FALSE(refusal(&MuonSettings::ns_steps, 101).empty());
}

TEST_CASE("MuonSettings: the defaults, which are those of the proof of concept's own test") {
  const MuonSettings s;
  CHECK(s.lr == 0.1f);
  CHECK(s.momentum == 0.9f);
  CHECK(s.weight_decay == 0.1f);
  CHECK(s.rms == 0.2f);
  CHECK(s.nesterov);
  CHECK(s.ns_steps == 5);
  CHECK(s.precision == Precision::fp32);
  CHECK(s.products == Products::eigen);
  CHECK(s.gather == Gather::buckets);
  CHECK(s.threads == 1);
  CHECK(s.scale == Scale::matched_rms);
  CHECK(s.scaling == Scaling::once);
  for (const bool off : {s.gather_unrounded, s.summed_gradients, s.lerp, s.decay_subtracts, s.round_scaled,
                         s.product_first, s.from_the_right})
    CHECK_FALSE(off);
  CHECK(s.schedule.empty());
  CHECK(s.fused.empty());
  const MuonSettings chosen = muon_settings(Precision::bf16, 7, Products::chain);
  CHECK(chosen.precision == Precision::bf16);
  CHECK(chosen.threads == 7);
  CHECK(chosen.products == Products::chain);
  CHECK(chosen.lr == s.lr);
}

TEST_CASE("MuonSettings: every choice of Newton–Schulz is handed on to it") {
  MuonSettings s;
  s.ns_steps = 9;
  s.precision = Precision::bf16;
  s.products = Products::chain;
  s.threads = 3;
  s.schedule = {{1, 2, 3}, {4, 5, 6}};
  s.normalization = {1e-3, true, 1.5, false};
  const NewtonSchulzSettings n = of_newton_schulz(s);
  CHECK(n.steps == 9);
  CHECK(n.precision == Precision::bf16);
  CHECK(n.products == Products::chain);
  CHECK(n.threads == 3);
  REQUIRE(n.schedule.size() == 2);
  CHECK(n.schedule[1].b == 5);
  CHECK(n.normalization.epsilon == 1e-3);
  CHECK(n.normalization.floor);
  CHECK(n.normalization.cushion == 1.5);
  CHECK_FALSE(n.normalization.round_first);
  CHECK_FALSE(n.product_first);
  CHECK_FALSE(n.from_the_right);
  for (const bool first : {true, false}) {
    s.product_first = first;
    s.from_the_right = !first;
    CHECK(of_newton_schulz(s).product_first == first);
    CHECK(of_newton_schulz(s).from_the_right == !first);
  }
}

TEST_CASE("MuonSettings: updates travel in bf16 where Newton–Schulz rounds them anyway, and nobody asked otherwise") {
  for (const bool bf16 : {false, true})
    for (const bool round_first : {false, true})
      for (const bool unrounded : {false, true}) {
        MuonSettings s;
        s.precision = bf16 ? Precision::bf16 : Precision::fp32;
        s.normalization.round_first = round_first;
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
    s.scale = scale;
    const float root = roots[i].first, rms = scale == Scale::matched_rms ? 0.25f : 1.0f;
    CHECK(update_scale({36, 4}, s) == 0.5f * rms * root);
    const auto factors = [&](Scaling scaling) {
      s.scaling = scaling;
      const std::array<float, 3> all = update_factors({36, 4}, s);
      return std::vector<float>(all.begin(), all.end());
    };
    CHECK(factors(Scaling::once) == std::vector<float>{0.5f * rms * root, 1, 1});
    CHECK(factors(Scaling::twice) == std::vector<float>{rms * root, 0.5f, 1});
    CHECK(factors(Scaling::thrice) == std::vector<float>{root, rms, 0.5f});
  }
}

TEST_CASE("flops: of momentum and of the new weights for an element, with every choice") {
  MuonSettings s;
  CHECK(momentum_flops(s) == 4);
  CHECK(apply_flops(s) == 3);
  s.lerp = true;
  CHECK(momentum_flops(s) == 6);
  s.nesterov = false;
  CHECK(momentum_flops(s) == 3);
  s.lerp = false;
  CHECK(momentum_flops(s) == 2);
  s.scaling = Scaling::twice;
  CHECK(apply_flops(s) == 4);
  s.decay_subtracts = true;
  CHECK(apply_flops(s) == 5);
  s.scaling = Scaling::thrice;
  CHECK(apply_flops(s) == 6);
  CHECK(newton_schulz_elements({3, 7}, Precision::fp32) == 2 * 21 + 2 * 9);
  CHECK(newton_schulz_elements({7, 3}, Precision::bf16) == 2 * 21 + 3 * 9);
}
