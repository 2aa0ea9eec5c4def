#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/io/float16.hpp"
#include "src/io/safetensors.hpp"
#include "src/io/safetensors_format.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr Dtype kDtypes[] = {
    {"BOOL", 1, StoredType::other},    {"U8", 1, StoredType::other},      {"I8", 1, StoredType::other},
    {"F8_E4M3", 1, StoredType::other}, {"F8_E5M2", 1, StoredType::other}, {"I16", 2, StoredType::other},
    {"U16", 2, StoredType::other},     {"F16", 2, StoredType::f16},       {"BF16", 2, StoredType::bf16},
    {"I32", 4, StoredType::other},     {"U32", 4, StoredType::other},     {"F32", 4, StoredType::f32},
    {"F64", 8, StoredType::other},     {"I64", 8, StoredType::other},     {"U64", 8, StoredType::other}};

// Little-endian whatever the machine is.
std::uint32_t load(const std::byte* from, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint32_t>(from[i]) << (8 * i);
  return value;
}

void keep(std::uint32_t value, int bytes, std::byte* to) {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

float to_float(StoredType type, const std::byte* from) {
  if (type == StoredType::f16) return float16_to_float(static_cast<std::uint16_t>(load(from, 2)));
  // The bits of a bfloat16 are the upper half of those of the float.
  const std::uint32_t bits = type == StoredType::bf16 ? load(from, 2) << 16 : load(from, 4);
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void from_float(StoredType type, float value, std::byte* to) {
  if (type == StoredType::f16) return keep(float_to_float16(value), 2, to);
  if (type == StoredType::bf16) return keep(bfloat16(value).bits, 2, to);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  keep(bits, 4, to);
}

Index element_bytes(StoredType type) { return type == StoredType::f32 ? 4 : 2; }

void require_trainable(const StoredTensor& tensor) {
  if (tensor.can_be_trained()) return;
  throw UsageError("tensor " + in_quotes(tensor.name) + " has " + std::to_string(tensor.shape.size()) +
                   (tensor.shape.size() == 1 ? " dimension" : " dimensions") + " and type " + tensor.dtype +
                   ", but what is trained has at most 2 dimensions and is of F32, BF16 or F16");
}

// Rows and columns: a vector, or a single number, is one row.
std::pair<Index, Index> matrix_shape(const StoredTensor& tensor) {
  if (tensor.shape.size() == 2) return {tensor.shape[0], tensor.shape[1]};
  return {1, tensor.elements()};
}

}  // namespace

const Dtype* find_dtype(const std::string& name) {
  for (const Dtype& dtype : kDtypes) {
    if (name == dtype.name) return &dtype;
  }
  return nullptr;
}

std::int64_t stored_bytes(const Dtype& dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = dtype.bytes;
  for (const std::int64_t length : shape) {
    if (length < 0) return -1;
    if (length > 0 && bytes > std::numeric_limits<std::int64_t>::max() / length) return -1;
    bytes *= length;
  }
  return bytes;
}

bool StoredTensor::can_be_trained() const { return shape.size() <= 2 && type != StoredType::other; }

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t length : shape) product *= length;
  return product;
}

Flat StoredTensor::values() const {
  if (type == StoredType::other)
    throw UsageError("tensor " + in_quotes(name) + " has the type " + dtype + ", not F32, BF16 or F16");
  const Index step = element_bytes(type), count = elements();
  if (static_cast<Index>(bytes.size()) != count * step)
    throw std::invalid_argument("tensor " + in_quotes(name) + " holds " + std::to_string(bytes.size()) +
                                " bytes, not " + std::to_string(count * step));
  Flat values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) values[i] = to_float(type, bytes.data() + i * step);
  return values;
}

Matrix StoredTensor::matrix() const {
  require_trainable(*this);
  const auto [rows, cols] = matrix_shape(*this);
  return Matrix(rows, cols, values());
}

void StoredTensor::store(const Matrix& values) {
  require_trainable(*this);
  const auto [rows, cols] = matrix_shape(*this);
  if (values.rows() != rows || values.cols() != cols) {
    throw std::invalid_argument("tensor " + in_quotes(name) + " is " + shape_text(rows, cols) + " and can't store " +
                                shape_text(values.rows(), values.cols()));
  }
  const Index step = element_bytes(type);
  bytes.resize(static_cast<std::size_t>(values.size() * step));
  for (Index i = 0; i < values.size(); ++i) from_float(type, values.data()[i], bytes.data() + i * step);
}

TensorIndex::TensorIndex(const SafetensorsFile& file) {
  for (const StoredTensor& tensor : file.tensors) by_name_.emplace(tensor.name, &tensor);
}

const StoredTensor* TensorIndex::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace muonwalk
