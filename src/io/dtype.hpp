#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/io/safetensors.hpp"

namespace muonwalk {

/// An element type of the safetensors format.
struct Dtype {
  const char* name;  ///< as in the file: "F32", "I64", …
  int bytes;         ///< of one element
  StoredType type;   ///< what Muonwalk makes of it
};

/// The type of that name, or null when the format knows none.
const Dtype* find_dtype(const std::string& name);

/// The bytes of a tensor of that shape, or −1 when a dimension is negative or the product exceeds 2^63 − 1.
std::int64_t stored_bytes(const Dtype& dtype, const std::vector<std::int64_t>& shape);

/// The name of a tensor or file in quotes, as it can stand in a sentence: control characters become '?', a long one is
/// cut.
std::string in_quotes(const std::string& name);

/// The longest header that the format allows, in bytes.
constexpr std::int64_t kLongestHeader = 100'000'000;

/// The key of the file's own strings, which no tensor may have for a name.
constexpr char kMetadataKey[] = "__metadata__";

}  // namespace muonwalk
