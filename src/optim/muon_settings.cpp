#include "src/optim/muon_settings.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

void require_option(bool sensible, const char* option, double value, const char* takes) {
  if (!sensible) throw UsageError(fmt::format("{} {:g} makes no sense for Muon; it takes {}", option, value, takes));
}

constexpr const char* kScaleNames[] = {"matched", "largest", "tall", "ratio", "none"};

}  // namespace

const char* scale_name(Scale scale) { return kScaleNames[static_cast<int>(scale)]; }

Scale parse_scale(const std::string& word) {
  for (const Scale scale : {Scale::matched_rms, Scale::largest, Scale::tall, Scale::ratio, Scale::none})
    if (word == scale_name(scale)) return scale;
  throw UsageError("--scale " + in_quotes(word) + " is not known; it takes matched, largest, tall, ratio or none");
}

void require_sensible(const MuonSettings& settings) {
  constexpr float kMost = 1e6f;  // larger than any that was ever meant, and no infinity
  const auto from_zero = [](float value) { return value >= 0 && value <= kMost; };
  require_option(from_zero(settings.lr), "--lr", settings.lr, "a number of at least 0, for example 0.1");
  require_option(settings.momentum >= 0 && settings.momentum < 1, "--momentum", settings.momentum,
                 "a number from 0 to below 1");
  require_option(from_zero(settings.weight_decay), "--weight-decay", settings.weight_decay, "a number of at least 0");
  require_option(from_zero(settings.rms), "--rms", settings.rms, "a number of at least 0, for example 0.2");
  require_option(settings.second_moment.beta2 >= 0 && settings.second_moment.beta2 < 1, "--beta2",
                 settings.second_moment.beta2, "a number from 0 to below 1");
  require_option(settings.newton_schulz.steps >= 0 && settings.newton_schulz.steps <= 100, "--ns-steps",
                 settings.newton_schulz.steps, "a whole number from 0 to 100");
}

}  // namespace muonwalk
