#pragma once

#include <cstdint>

namespace muonwalk {

/// The value of an IEEE 754 half-precision number (1 sign, 5 exponent, 10 mantissa bits), given by its bits. Exact; a
/// NaN keeps its sign and payload.
float float16_to_float(std::uint16_t bits);

/// The bits of the nearest half-precision number, ties to even. Subnormals are kept, what is too large becomes
/// infinity, a NaN keeps its sign and the upper bits of its payload, so that float16_to_float and back changes no bit.
std::uint16_t float_to_float16(float value);

}  // namespace muonwalk
