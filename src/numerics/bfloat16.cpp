#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

bfloat16::bfloat16(float value) : bits(static_cast<std::uint16_t>(nearest_bf16_bits(float_bits(value)) >> 16)) {}

bfloat16::operator float() const { return float_from_bits(static_cast<std::uint32_t>(bits) << 16); }

const char* precision_name(Precision precision) { return precision == Precision::fp32 ? "fp32" : "bf16"; }

void round_to_bf16(float* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = nearest_bf16(values[i]);
}

void to_bf16(const float* values, Index count, bfloat16* out) {
  for (Index i = 0; i < count; ++i) {
    out[i].bits = static_cast<std::uint16_t>(nearest_bf16_bits(float_bits(values[i])) >> 16);
  }
}

void from_bf16(const bfloat16* values, Index count, float* out) {
  for (Index i = 0; i < count; ++i) out[i] = float_from_bits(static_cast<std::uint32_t>(values[i].bits) << 16);
}

}  // namespace muonwalk
