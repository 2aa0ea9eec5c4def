#include "src/optim/muon_settings.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

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
  for (float zero : {0.0f}) {
    CHECK(refusal(&MuonSettings::lr, zero).empty());
    CHECK(refusal(&MuonSettings::momentum, zero).empty());
    CHECK(refusal(&MuonSettings::weight_decay, zero).empty());
    CHECK(refusal(&MuonSettings::rms, zero).empty());
  }
  CHECK(refusal(&MuonSettings::ns_steps, 0).empty());
  CHECK(refusal(&MuonSettings::ns_steps, 100).empty());
}

TEST_CASE("require_sensible: what makes no sense is refused with the option, the value and what works") {
  const float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (float wrong : {-1.0f, infinite, nan}) {
    CHECK(refusal(&MuonSettings::lr, wrong).rfind("--lr ", 0) == 0);
    CHECK(refusal(&MuonSettings::momentum, wrong).rfind("--momentum ", 0) == 0);
    CHECK(refusal(&MuonSettings::weight_decay, wrong).rfind("--weight-decay ", 0) == 0);
    CHECK(refusal(&MuonSettings::rms, wrong).rfind("--rms ", 0) == 0);
  }
  CHECK(refusal(&MuonSettings::momentum, 1.0f) ==
        "--momentum 1 makes no sense for Muon; it takes a number from 0 to below 1");
  CHECK(refusal(&MuonSettings::ns_steps, -1) ==
        "--ns-steps -1 makes no sense for Muon; it takes a whole number from 0 to 100");
  CHECK_FALSE(refusal(&MuonSettings::ns_steps, 101).empty());
}
