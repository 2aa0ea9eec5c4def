#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Element types of safetensors that Muonwalk reads and writes. Any other known type is carried as bytes.
enum class StoredType { f32, bf16, f16, other };

/// One tensor of a file, in the bytes in which it is stored.
struct StoredTensor {
  std::string name;
  std::string dtype;                    ///< The file's word: "F32", "BF16", "F16", "I64", …
  StoredType type = StoredType::other;  ///< What Muonwalk makes of `dtype`.
  std::vector<std::int64_t> shape;      ///< A scalar has none.
  std::vector<std::byte> bytes;         ///< Row-major, little-endian.

  /// True for a matrix, a vector or a single number of a type that can be trained: F32, BF16 or F16.
  bool can_be_trained() const;
  std::int64_t elements() const;
  /// The values as float32, row-major, whatever the shape. Throws UsageError unless the type is F32, BF16 or F16.
  Flat values() const;
  /// The values as float32 (exact for all three types), a vector or a single number as one row. Throws UsageError when
  /// !can_be_trained().
  Matrix matrix() const;
  /// Stores float32 values in the tensor's own type (round to nearest even). The shape must be that of matrix().
  void store(const Matrix& values);
};

/// A safetensors file in memory: tensors in the order of their data, and the `__metadata__` strings.
struct SafetensorsFile {
  std::vector<StoredTensor> tensors;
  /// The strings under `__metadata__`, key and value, in the order of the file.
  std::vector<std::pair<std::string, std::string>> metadata;

  /// The tensor of that name, or null. It looks at one after the other; whoever asks for many makes a TensorIndex.
  const StoredTensor* find(const std::string& name) const;
};

/// The tensors of a file by their names. The file must outlive it, and stay as it is.
class TensorIndex {
 public:
  explicit TensorIndex(const SafetensorsFile& file);
  /// The tensor of that name, or null.
  const StoredTensor* find(const std::string& name) const;

 private:
  std::unordered_map<std::string_view, const StoredTensor*> by_name_;
};

/// A safetensors file of which only the header was read: tensors are read one at a time. The file stays open.
class SafetensorsReader {
 public:
  /// Throws UsageError as read_safetensors does.
  explicit SafetensorsReader(const std::string& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&& other) noexcept;

  /// In the order of their data, without their bytes.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  /// The tensor of that index, with its bytes. Throws UsageError, one sentence, when they can't be read any more.
  StoredTensor read(std::size_t tensor) const;

 private:
  struct File;
  std::unique_ptr<File> file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// Reads a file as https://github.com/huggingface/safetensors defines it (8 bytes little-endian header length, JSON
/// header, data).
/// Throws UsageError, one sentence that names the file and what is wrong: missing, not readable, truncated, header
/// longer than the file or than 100 MB, not JSON, duplicate names, unknown dtype, negative or overflowing shape,
/// offsets that overlap, leave holes, run past the end or do not match shape and type.
SafetensorsFile read_safetensors(const std::string& path);

/// Writes a file so that it is either whole or not there: to a file beside it, flushed to the disk, then renamed over
/// `path`. An existing file stays as it was until then; on failure the file beside is removed. Throws UsageError with
/// the system's reason (no such folder, read-only, disk full).
void write_safetensors(const std::string& path, const SafetensorsFile& file);

/// Refuses an output path that can't be written before any work is done: creates and removes the file beside it.
/// Throws UsageError as write_safetensors would.
void require_writable(const std::string& path);

}  // namespace muonwalk
