#include "tests/near.hpp"

#include <limits>
#include <sstream>

TEST_CASE("near: a share of the expected number is the only slack, however small the number") {
  for (const double expected : {1.0, -3e7, 2.5e-14}) {
    CAPTURE(expected);
    CHECK(expected == near(expected));
    CHECK(expected * (1 + 0.9e-9) == near(expected));
    CHECK(expected * (1 - 0.9e-9) == near(expected));
    CHECK(expected * (1 + 1.1e-9) != near(expected));
    CHECK(expected * 1.01 == near(expected, 0.011));
    CHECK(expected * 1.01 != near(expected, 0.009));
    CHECK(-expected != near(expected));
    CHECK(0 != near(expected));
  }
  CHECK(0 == near(0));
  CHECK(1e-300 != near(0));
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(infinity == near(infinity));
  CHECK(1 != near(infinity));
  CHECK(nan != near(nan));
}

TEST_CASE("near: what it prints says how far off the number is") {
  const near wanted(0.5, 1e-3);
  CHECK(0.75 != wanted);
  std::ostringstream said;
  said << wanted;
  CHECK(said.str() == "0.5 ± 0.001 of it, and it is off by 0.5 of it");
}
