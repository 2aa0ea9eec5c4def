#include "sim/analyser/json_scalar.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace muonwalk::sim {
namespace {

// In nanoseconds, a begin and a duration of this size still fit into 64 bits together.
constexpr std::int64_t kMostMicroseconds = 4'000'000'000'000'000;

// "5002216834593.415" → 5002216834593415. Nothing for digits with an exponent, or too many of them.
std::optional<std::int64_t> fixed_point_as_ns(const std::string& digits) {
  std::int64_t ns = 0;
  std::size_t i = 0;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative) ++i;
  const auto is_digit = [&](std::size_t at) { return at < digits.size() && digits[at] >= '0' && digits[at] <= '9'; };
  for (; is_digit(i); ++i) {
    ns = ns * 10 + (digits[i] - '0');
    if (ns > kMostMicroseconds) return std::nullopt;
  }
  if (i < digits.size() && digits[i] == '.') ++i;
  for (int place = 0; place < 3; ++place) ns = ns * 10 + (is_digit(i) ? digits[i++] - '0' : 0);
  if (is_digit(i) && digits[i] >= '5') ++ns;
  while (is_digit(i)) ++i;
  if (i != digits.size()) return std::nullopt;
  return negative ? -ns : ns;
}

}  // namespace

const std::string& JsonScalar::as_text() const {
  static const std::string none;
  return kind == Kind::text ? *text : none;
}

std::optional<std::int64_t> JsonScalar::as_integer() const {
  if (kind == Kind::integer) return integer;
  if (kind != Kind::text) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [read_to, error] = std::from_chars(text->data(), end, value);
  if (text->empty() || error != std::errc() || read_to != end) return std::nullopt;
  return value;
}

std::optional<std::int64_t> JsonScalar::microseconds_as_ns() const {
  if (kind == Kind::integer) {
    if (integer > kMostMicroseconds || integer < -kMostMicroseconds) return std::nullopt;
    return integer * 1000;
  }
  if (kind != Kind::decimal) return std::nullopt;
  if (const auto exact = fixed_point_as_ns(*text)) return exact;
  const double value = std::strtod(text->c_str(), nullptr);
  if (!(std::fabs(value) <= static_cast<double>(kMostMicroseconds))) return std::nullopt;
  return std::llround(value * 1000);
}

std::string JsonScalar::as_label() const {
  if (kind == Kind::text || kind == Kind::decimal) return *text;
  return kind == Kind::integer ? std::to_string(integer) : "";
}

}  // namespace muonwalk::sim
