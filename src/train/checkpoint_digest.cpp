#include "src/train/checkpoint_digest.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdint>

namespace muonwalk {
namespace {

// Each part begins with the digest of those before it, so that what ends one can't begin the next.
class ChainedDigest {
 public:
  void add(const void* bytes, std::size_t count) { digest_ = XXH3_64bits_withSeed(bytes, count, digest_); }
  void add(const std::string& text) { add(text.data(), text.size()); }
  std::string text() const { return fmt::format("{:016x}", digest_); }

 private:
  std::uint64_t digest_ = 0;
};

}  // namespace

std::string contents_digest(const SafetensorsFile& file) {
  ChainedDigest digest;
  for (const auto& [key, value] : file.metadata) {
    if (key == kDigestKey) continue;
    digest.add(key);
    digest.add(value);
  }
  for (const StoredTensor& tensor : file.tensors) {
    digest.add(tensor.name);
    digest.add(fmt::format("{} {}", tensor.dtype, fmt::join(tensor.shape, " ")));
    digest.add(tensor.bytes.data(), tensor.bytes.size());
  }
  return digest.text();
}

}  // namespace muonwalk
