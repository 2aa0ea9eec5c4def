#pragma once

#include <string>

#include "src/io/safetensors.hpp"

namespace muonwalk {

/// The key of the metadata that a digest lies under.
constexpr char kDigestKey[] = "muonwalk.digest";

/// 16 hex digits that tell the contents of a file from any others, and their order: the 64-bit XXH3 of all names,
/// types, shapes, bytes and metadata, but for the digest itself.
std::string contents_digest(const SafetensorsFile& file);

}  // namespace muonwalk
