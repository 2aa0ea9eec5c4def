#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/io/safetensors.hpp"

namespace muonwalk {

/// An element type of the safetensors format.
struct Dtype {
  const char* name;  ///< The file's word: "F32", "I64", …
  int bytes;         ///< The size of one element.
  StoredType type;
};

/// The type of that name, or null when the format knows none.
const Dtype* find_dtype(const std::string& name);

/// The bytes of a tensor of that shape, or −1 when a dimension is negative or the product exceeds 2^63 − 1.
std::int64_t stored_bytes(const Dtype& dtype, const std::vector<std::int64_t>& shape);

/// The longest header that the format allows, in bytes.
constexpr std::int64_t kLongestHeader = 100'000'000;

/// The key of the file's own strings, which no tensor may have for a name.
constexpr char kMetadataKey[] = "__metadata__";

/// What a header says of one tensor, not yet checked against anything: without its type and bytes.
struct TensorEntry : StoredTensor {
  std::vector<std::int64_t> offsets;  ///< Begin and end, in bytes of the data.
};

/// The JSON header of a safetensors file, in its own order.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Parses a header without building a tree of it, so that a hostile one costs no more memory than its own length
/// allows, and so that a name that stands twice is seen. Throws std::runtime_error with the reason, e.g. `its header
/// names "w" twice`. It checks the form alone: every tensor has a dtype, a shape of integers and two offsets.
SafetensorsHeader parse_safetensors_header(const std::string& json);

}  // namespace muonwalk
