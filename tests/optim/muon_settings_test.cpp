#include "src/optim/muon_settings.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/errors.hpp"

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
