#pragma once

#include <cstddef>

#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

/// What a collective moves.
enum class ElementType { float32, bfloat16, bytes };

/// Bytes of one element: 4, 2, 1.
constexpr Index element_size(ElementType type) {
  return type == ElementType::float32 ? 4 : type == ElementType::bfloat16 ? 2 : 1;
}

/// "float32", "bfloat16", "bytes".
constexpr const char* element_name(ElementType type) {
  return type == ElementType::float32 ? "float32" : type == ElementType::bfloat16 ? "bfloat16" : "bytes";
}

/// The ElementType of float, bfloat16 and std::byte.
template <class T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::float32;
};
template <>
struct ElementTypeOf<bfloat16> {
  static constexpr ElementType value = ElementType::bfloat16;
};
template <>
struct ElementTypeOf<std::byte> {
  static constexpr ElementType value = ElementType::bytes;
};

}  // namespace muonwalk
