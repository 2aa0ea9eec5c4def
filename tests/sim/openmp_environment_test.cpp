// What OpenMP's variables may hold: how a size is read.
#include "sim/world/openmp_environment.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>

#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// Whether stacks of this size are refused to the second thread of a rank.
bool refuses(const char* variable, const std::string& size) {
  setenv(variable, size.c_str(), 1);
  bool refused = false;
  try {
    require_openmp_environment(2);
  } catch (const UsageError&) {
    refused = true;
  }
  unsetenv(variable);
  return refused;
}

}  // namespace

// What a system gives is not known here, but that it gives the same to who asks for the same. Somewhere between a KiB
// and more than any processor can address it begins to refuse, so a unit that is taken for another one shows there.
TEST_CASE("OpenMP's stacks: sizes are KiB where no unit is said, and a unit is 1,024 of the one below") {
  for (const char* variable : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    CAPTURE(variable);
    int refused = 0;
    for (int bits = 0; bits < 54; ++bits) {
      CAPTURE(bits);
      const auto power = [](int exponent) { return std::to_string(1LL << exponent); };
      const bool in_kib = refuses(variable, power(bits) + "k");
      CHECK(refuses(variable, power(bits)) == in_kib);
      CHECK(refuses(variable, " +" + power(bits) + "K ") == in_kib);
      if (bits < 49) CHECK(refuses(variable, power(bits + 10) + "b") == in_kib);
      if (bits >= 10) CHECK(refuses(variable, power(bits - 10) + "M") == in_kib);
      if (bits >= 20) CHECK(refuses(variable, power(bits - 20) + " g") == in_kib);
      refused += in_kib;
    }
    CHECK(refused > 0);
    CHECK(refused < 54);
  }
}
