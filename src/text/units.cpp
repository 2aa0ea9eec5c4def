#include "src/text/units.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace muonwalk {

std::string number_text(std::int64_t number) {
  std::string digits = std::to_string(number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string count_text(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string fixed_text(double number, int digits, const std::string& unit) {
  return fmt::format("{:.{}f}{}{}", number, digits, unit.empty() ? "" : " ", unit);
}

std::string prefixed_text(double number, const std::string& unit, int digits) {
  const double most = 1000 - 0.5 * std::pow(10, 3 - digits);  // what would be rounded up to 1000
  const char* prefix = "";
  for (const char* larger : {"k", "M", "G", "T", "P"}) {
    if (std::abs(number) < most) break;
    number /= 1000;
    prefix = larger;
  }
  const std::string with_prefix = prefix + unit;
  return fmt::format("{:.{}g}{}{}", number, digits, with_prefix.empty() ? "" : " ", with_prefix);
}

std::string bytes_text(std::int64_t bytes) { return number_text(bytes) + " B"; }

std::string megabytes_text(double bytes) { return fixed_text(bytes / 1e6, 1, "MB"); }

std::string gibibytes_text(double bytes) { return fixed_text(bytes / (1024.0 * 1024 * 1024), 1, "GiB"); }

std::string seconds_text(double seconds) { return seconds_text(seconds, 3); }

std::string seconds_text(double seconds, int digits) {
  if (seconds < 1e-3) return fmt::format("{:.{}g} µs", seconds * 1e6, digits);
  if (seconds < 1) return fmt::format("{:.{}g} ms", seconds * 1e3, digits);
  if (seconds < 1000 - 0.5 * std::pow(10, 3 - digits)) return fmt::format("{:.{}g} s", seconds, digits);
  const double step = std::pow(10, std::floor(std::log10(seconds)) + 1 - digits);
  return number_text(std::llround(std::round(seconds / step) * step)) + " s";
}

std::string ms_text(std::int64_t ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  return fixed_text(ms, ns != 0 && std::abs(ns) < 100'000 ? 4 : 2);
}

std::string percent_text(double share) { return fixed_text(100 * share, 1, "%"); }

std::string ratio_text(double part, double of) {
  if (of == 0) return "–";
  return fixed_text(part / of, part / of < 100 ? 2 : 0);
}

std::string flops_text(double flops) {
  if (flops == 0) return "";
  if (flops < 1e6) return number_text(static_cast<std::int64_t>(flops)) + " FLOP";
  return flops < 1e9 ? fixed_text(flops / 1e6, 2, "MFLOP") : fixed_text(flops / 1e9, 2, "GFLOP");
}

}  // namespace muonwalk
