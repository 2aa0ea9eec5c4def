#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muonwalk::sim {

/// A value in JSON that is neither an object nor an array, as the parser hands it over.
struct JsonScalar {
  /// A string, a whole number that fits into 64 bits, any other number, or what is none of them (true, false, null).
  enum class Kind { text, integer, decimal, nothing };
  Kind kind = Kind::nothing;          ///< which member holds the value
  const std::string* text = nullptr;  ///< of a text; of a decimal, its digits as they stand in the file
  std::int64_t integer = 0;           ///< of a whole number

  /// The text; empty when it is none.
  const std::string& as_text() const;
  /// The whole number, also where it is written as a text ("4"); nothing when it is none.
  std::optional<std::int64_t> as_integer() const;
  /// Microseconds as whole nanoseconds, rounded half away from zero and exact up to three decimals, for a double would
  /// not hold the last digit of a clock that counts from 1970. Nothing when it is no number, or more than 126 years.
  std::optional<std::int64_t> microseconds_as_ns() const;
  /// The text, or the number in digits: process and thread ids are either.
  std::string as_label() const;
};

}  // namespace muonwalk::sim
