#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// A sum of squares of float32 numbers that has no order: nothing in it is ever rounded, so however the numbers are
/// dealt out and whoever adds first, the sum has the same bits. A global norm is taken with it, over ranks that hold
/// shards of different sizes.
///
/// It is a fixed-point number, wide enough for the square of every finite float32, the smallest (2⁻²⁹⁸) and the largest
/// (below 2²⁵⁶), and for 2⁶⁴ of them (Kulisch's long accumulator). Once a number was a NaN or an infinity, there is no
/// sum any more: finite() says so, value() is a NaN, and so it stays whatever is added.
class ExactSum {
 public:
  static constexpr int kDigits = 20;  ///< Of 32 bits each.
  static constexpr int kBytes = 4 * kDigits + 4;

  /// Adds the squares of `count` numbers. Numbers are first added up by their exponents, so that one takes a few
  /// instructions, and a call about as long as a thousand of them besides; give it long ranges.
  void add_squares(const float* values, Index count);
  void add(const ExactSum& other);

  /// False once a NaN or an infinity was added.
  bool finite() const { return finite_; }
  /// The sum, rounded once: the double that is nearest, of two equally near ones the even one. NaN where it is not
  /// finite().
  double value() const;

  /// As bytes that another rank can read: the digits, lowest first, each with its lowest byte first, and a last one,
  /// in 4 bytes too, that is 1 where the sum is not finite() and else 0. Equal sums have equal bytes.
  /// @{
  std::array<std::byte, kBytes> bytes() const;
  static ExactSum of_bytes(const std::byte* bytes);
  /// @}

 private:
  // Adds `squares` · 2^(2 · exponent) units, of which each is 2⁻²⁹⁸.
  void add_scaled(std::uint64_t squares, int exponent);

  std::array<std::uint32_t, kDigits> digits_{};  // lowest first; the sum in units of 2⁻²⁹⁸
  bool finite_ = true;
};

}  // namespace muonwalk
