#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muonwalk {

/// What a header says of one tensor, not yet checked against anything.
struct TensorEntry {
  std::string name;                   ///< the tensor's
  std::string dtype;                  ///< "F32", "I64", …
  std::vector<std::int64_t> shape;    ///< empty for a scalar
  std::vector<std::int64_t> offsets;  ///< begin and end, in bytes of the data
};

/// The JSON header of a safetensors file, in its own order.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;                           ///< in the header's order
  std::vector<std::pair<std::string, std::string>> metadata;  ///< of `__metadata__`, key and value
};

/// Parses a header without building a tree of it, so that a hostile one costs no more memory than its own length
/// allows, and so that a name that stands twice is seen. Throws std::runtime_error with the reason, e.g. `its header
/// names "w" twice`. It checks the form alone: every tensor has a dtype, a shape of integers and two offsets.
SafetensorsHeader parse_safetensors_header(const std::string& json);

}  // namespace muonwalk
