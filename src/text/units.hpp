#pragma once

#include <cstdint>
#include <string>

namespace muonwalk {

/// The one place for how a number and its unit are written.

/// "1,430,560".
std::string number_text(std::int64_t number);

/// "1 bucket", "3 buckets".
std::string count_text(std::int64_t count, const std::string& noun);

/// With this many digits after the point, and a unit where one is given: "2.50", "1.5 GiB".
std::string fixed_text(double number, int digits, const std::string& unit = "");

/// With `digits` digits in all, and the prefix (k, M, G, T, P) that leaves one to three before the point: "1.43 MB",
/// "615 GFLOP", "12".
std::string prefixed_text(double number, const std::string& unit, int digits = 3);

/// Every byte: "1,430,560 B".
std::string bytes_text(std::int64_t bytes);

/// Millions of bytes: "1.4 MB".
std::string megabytes_text(double bytes);

/// Units of 1024³ bytes, as memory is sold: "79.6 GiB".
std::string gibibytes_text(double bytes);

/// With three digits in all, or with `digits`: "1.23 µs", "45.6 ms", "7.89 s", "1,450 s".
/// @{
std::string seconds_text(double seconds);
std::string seconds_text(double seconds, int digits);
/// @}

/// Nanoseconds as milliseconds, without the unit: "248.45"; four digits after the point below a tenth of one.
std::string ms_text(std::int64_t ns);

/// A share, from 0 to 1: "61.0 %".
std::string percent_text(double share);

/// How often `of` is in `part`: "1.50", "250" from 100 on, "–" where `of` is 0.
std::string ratio_text(double part, double of);

/// Floating-point operations: "800 FLOP", "1.43 MFLOP", "2.50 GFLOP"; nothing where there are none.
std::string flops_text(double flops);

}  // namespace muonwalk
