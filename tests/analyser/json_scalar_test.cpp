#include "sim/analyser/json_scalar.hpp"

#include <doctest/doctest.h>

using namespace muonwalk::sim;

namespace {

std::optional<std::int64_t> ns_of(const std::string& digits) {
  JsonScalar value;
  value.kind = JsonScalar::Kind::decimal;
  value.text = &digits;
  return value.microseconds_as_ns();
}

}  // namespace

TEST_CASE("json_scalar: microseconds become nanoseconds without losing the last digit") {
  CHECK(ns_of("5056285617232.305") == 5056285617232305);
  CHECK(ns_of("1759300074000000.001") == 1759300074000000001);
  CHECK(ns_of("0.0005") == 1);
  CHECK(ns_of("0.00049") == 0);
  CHECK(ns_of("-1.5") == -1500);
  CHECK(ns_of("1.5e3") == 1500000);
}

TEST_CASE("json_scalar: what is no time is nothing") {
  CHECK_FALSE(ns_of("1e30").has_value());
  CHECK_FALSE(ns_of("99999999999999999999.5").has_value());
  JsonScalar text;
  text.kind = JsonScalar::Kind::text;
  const std::string digits = "12";
  text.text = &digits;
  CHECK_FALSE(text.microseconds_as_ns().has_value());
  CHECK(text.as_integer() == 12);
  CHECK_FALSE(JsonScalar().as_integer().has_value());
}
