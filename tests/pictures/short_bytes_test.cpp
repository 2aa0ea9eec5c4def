// Sizes in pictures, where there is room for a few characters.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "sim/pictures/strip_blocks.hpp"

using muonwalk::sim::short_bytes;

TEST_CASE("short_bytes: to the byte while they are few, then rounded to the nearest kB or 0.1 MB") {
  for (const long long bytes : {0LL, 1LL, 40LL, 999LL, 1000LL, 9999LL, 10'000LL, 10'499LL, 10'500LL, 10'501LL, 99'499LL,
                                99'500LL, 123'456LL, 999'400LL, 1'000'000LL, 1'049'000LL, 1'051'000LL, 98'765'432LL}) {
    const std::string text = short_bytes(bytes);
    CAPTURE(bytes);
    CAPTURE(text);
    CHECK(text.size() <= 7);
    std::string digits;
    for (const char c : text)
      if (c != ',') digits += c;
    char* end = nullptr;
    const double number = std::strtod(digits.c_str(), &end);
    const std::string unit = end;
    const bool known = unit == " B" || unit == " kB" || unit == " MB";
    CHECK(known);
    const double factor = unit == " B" ? 1 : unit == " kB" ? 1e3 : 1e6;
    const double step = unit == " B" ? 0 : unit == " kB" ? 1e3 : 1e5;
    CHECK(std::abs(number * factor - static_cast<double>(bytes)) <= step / 2 * (1 + 1e-9));
  }
}

TEST_CASE("short_bytes: letter for letter, at the ends of each unit") {
  const std::pair<long long, const char*> texts[] = {
      {0, "0 B"},           {999, "999 B"},        {1234, "1,234 B"},     {9999, "9,999 B"},
      {10'000, "10 kB"},    {10'499, "10 kB"},     {10'500, "11 kB"},     {999'499, "999 kB"},
      {999'999, "1000 kB"}, {1'000'000, "1.0 MB"}, {1'049'999, "1.0 MB"}, {12'345'678, "12.3 MB"}};
  for (const auto& [bytes, text] : texts) CHECK(short_bytes(bytes) == text);
}
