#include "src/numerics/exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace muonwalk {
namespace {

// A float32 is m · 2^(e − 149), where e is 0 for subnormal numbers and those of the smallest binade, and one more for
// each binade above. Its square is m² · 2^(2e) units of 2⁻²⁹⁸.
constexpr int kUnit = -298;
constexpr int kExponents = 256;       // as they are stored: e + 1, but 0 for subnormal numbers
constexpr int kNotFinite = 255;       // as stored, for NaN and infinities
constexpr Index kOfOneBin = 1 << 16;  // squares of 48 bits that fit into 64 without a carry

// Squares by stored exponent. Two lanes, because most neighbours have the same exponent, and would wait for each other.
struct Bins {
  std::uint64_t lane[2][kExponents] = {};

  void add(int number, float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    const std::uint32_t stored = bits >> 23 & 255;
    const std::uint64_t m = (bits & 0x7fffff) | static_cast<std::uint32_t>(stored != 0) << 23;
    lane[number][stored] += m * m;
  }
};

}  // namespace

void ExactSum::add_squares(const float* values, Index count) {
  for (Index begin = 0; begin < count; begin += 2 * kOfOneBin) {
    const Index end = std::min(count, begin + 2 * kOfOneBin);
    Bins bins;
    Index i = begin;
    for (; i + 2 <= end; i += 2) {
      bins.add(0, values[i]);
      bins.add(1, values[i + 1]);
    }
    if (i < end) bins.add(0, values[i]);
    for (const auto& lane : bins.lane) {
      for (int stored = 0; stored < kNotFinite; ++stored)
        if (lane[stored] != 0) add_scaled(lane[stored], std::max(stored - 1, 0));
      if (lane[kNotFinite] != 0) finite_ = false;
    }
  }
}

void ExactSum::add_scaled(std::uint64_t squares, int exponent) {
  const int digit = 2 * exponent / 32, shift = 2 * exponent % 32;
  const std::uint32_t parts[3] = {static_cast<std::uint32_t>(squares << shift),
                                  static_cast<std::uint32_t>((squares << shift) >> 32),
                                  static_cast<std::uint32_t>(shift == 0 ? 0 : squares >> (64 - shift))};
  std::uint64_t carry = 0;
  for (int i = digit; i < kDigits && (i < digit + 3 || carry != 0); ++i) {
    carry += std::uint64_t{digits_[i]} + (i < digit + 3 ? parts[i - digit] : 0);
    digits_[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
}

void ExactSum::add(const ExactSum& other) {
  finite_ = finite_ && other.finite_;
  std::uint64_t carry = 0;
  for (int i = 0; i < kDigits; ++i) {
    carry += std::uint64_t{digits_[i]} + other.digits_[i];
    digits_[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
}

double ExactSum::value() const {
  if (!finite_) return std::numeric_limits<double>::quiet_NaN();
  int top = kDigits - 1;
  while (top > 0 && digits_[top] == 0) --top;
  // The highest 64 bits; the lowest of them stands for all below. A double has 53: it is rounded as the whole would be.
  const auto digit = [this](int i) { return i < 0 ? std::uint64_t{0} : std::uint64_t{digits_[i]}; };
  std::uint64_t high = digit(top) << 32 | digit(top - 1), low = digit(top - 2);
  int exponent = 32 * (top - 1);
  while (high != 0 && high >> 63 == 0) {
    high = high << 1 | (low >> 31 & 1);
    low = low << 1 & 0xffffffff;
    --exponent;
  }
  bool below = low != 0;
  for (int i = 0; i < top - 2; ++i) below = below || digits_[i] != 0;
  return std::ldexp(static_cast<double>(high | static_cast<std::uint64_t>(below)), exponent + kUnit);
}

std::array<std::byte, ExactSum::kBytes> ExactSum::bytes() const {
  std::array<std::byte, kBytes> bytes;
  for (int i = 0; i < kBytes; ++i) {
    const std::uint32_t word = i / 4 < kDigits ? digits_[i / 4] : !finite_;
    bytes[i] = static_cast<std::byte>(word >> 8 * (i % 4));
  }
  return bytes;
}

ExactSum ExactSum::of_bytes(const std::byte* bytes) {
  ExactSum sum;
  for (int i = 0; i < kBytes; ++i) {
    const std::uint32_t byte = static_cast<std::uint32_t>(bytes[i]);
    if (i / 4 < kDigits)
      sum.digits_[i / 4] |= byte << 8 * (i % 4);
    else
      sum.finite_ = sum.finite_ && byte == 0;
  }
  return sum;
}

}  // namespace muonwalk
