#include "src/numerics/philox.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/near.hpp"

using namespace muonwalk;

namespace {

using Words = std::array<std::uint32_t, 4>;

}  // namespace

TEST_CASE("philox4x32_10: the known answers of its authors") {
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32_10({ones, ones, ones, ones}, {ones, ones}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random_value: the four words of its block as uniform numbers, centred and scaled to variance 1") {
  for (std::uint64_t element : {0ull, 1ull, 77ull, 0xffffffffull, 0x100000000ull, 0xfedcba9876543210ull}) {
    CAPTURE(element);
    const RandomTensor key{0x0123456789abcdef, 0x1122334455667788};
    const Words words = philox4x32_10(
        {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), 0x55667788, 0x11223344},
        {0x89abcdef, 0x01234567});
    long double sum = -2;
    for (std::uint32_t word : words) sum += static_cast<long double>(word) / 4294967296.0L;
    const float expected = static_cast<float>(sum * std::sqrt(3.0L));
    CHECK(random_value(key, element) == near(expected, 1e-6));
  }
}

TEST_CASE("random_value: these bits, on every machine") {
  // From the known answers above, by hand: (0x6627e8d5 + 0xe169c58d + 0xbc57ac4c + 0x9b00dbd8 − 2³³) · √3 / 2³².
  CHECK(random_value({0, 0}, 0) == 0x1.133fa80000000p+0f);
  CHECK(random_value({7, 1}, 123456789) == 0x1.f667f20000000p-1f);
}

TEST_CASE("random_matrix: a rank that makes only its part gets the bits of the whole") {
  const RandomTensor key{9, 4};
  const Matrix whole = random_matrix(key, 7, 11);
  for (Index i = 0; i < 7; ++i) {
    for (Index j = 0; j < 11; ++j) {
      const float value = random_value(key, static_cast<std::uint64_t>(i * 11 + j));
      REQUIRE(std::memcmp(&value, &whole.flat()[static_cast<std::size_t>(i * 11 + j)], sizeof(float)) == 0);
    }
  }
  for (Index first = 0; first <= whole.size(); ++first) {
    for (Index count = 0; first + count <= whole.size(); count += 5) {
      Flat part(static_cast<std::size_t>(count) + 1, 5.0f);
      random_values(key, static_cast<std::uint64_t>(first), count, part.data());
      REQUIRE(std::equal(part.begin(), part.end() - 1, whole.data() + first));
      REQUIRE(part.back() == 5.0f);
    }
  }
}

TEST_CASE("random_values: across 2³² and 2⁶⁴ elements each is the value of its own number") {
  for (const RandomTensor key : {RandomTensor{9, 4}, {std::uint64_t{3} << 32 | 9, std::uint64_t{7} << 32 | 4}})
    for (const std::uint64_t border : {std::uint64_t{1} << 32, std::uint64_t{5} << 32, std::uint64_t{0}})
      for (std::uint64_t before = 1; before <= 20; ++before) {
        CAPTURE(border);
        CAPTURE(before);
        Flat values(40);
        random_values(key, border - before, 40, values.data());
        for (std::uint64_t i = 0; i < 40; ++i) REQUIRE(values[i] == random_value(key, border - before + i));
      }
}
