#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/safetensors.hpp"
#include "src/io/safetensors_format.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr std::size_t kHeaderAlignment = 8;

// A string as JSON writes it, with its quotes.
std::string json_string(const std::string& path, const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw UsageError("can't write " + in_quotes(path) + ": " + in_quotes(text) +
                     " is not UTF-8, as names have to be; rename it");
  }
}

std::int64_t checked_bytes(const StoredTensor& tensor) {
  const Dtype* dtype = find_dtype(tensor.dtype);
  if (dtype == nullptr) throw std::invalid_argument("tensor " + in_quotes(tensor.name) + " has an unknown type");
  const std::int64_t bytes = stored_bytes(*dtype, tensor.shape);
  if (bytes < 0 || static_cast<std::uint64_t>(bytes) != tensor.bytes.size()) {
    throw std::invalid_argument("tensor " + in_quotes(tensor.name) + " holds " + std::to_string(tensor.bytes.size()) +
                                " bytes, which its shape and type do not take");
  }
  return bytes;
}

// The JSON header, padded with spaces so that the data begins at a multiple of 8 bytes. Put together by hand, because
// it is a flat list whose order matters.
std::string header_text(const std::string& path, const SafetensorsFile& file) {
  std::set<std::string> names = {kMetadataKey};
  std::string text = "{";
  const auto begin_entry = [&](const std::string& name) {
    if (text.size() > 1) text += ",";
    text += json_string(path, name) + ":{";
  };
  if (!file.metadata.empty()) {
    begin_entry(kMetadataKey);
    std::set<std::string> keys;
    for (const auto& [key, value] : file.metadata) {
      if (!keys.insert(key).second) throw std::invalid_argument("metadata " + in_quotes(key) + " stands twice");
      text += (keys.size() > 1 ? "," : "") + json_string(path, key) + ":" + json_string(path, value);
    }
    text += "}";
  }
  std::int64_t begin = 0;
  for (const StoredTensor& tensor : file.tensors) {
    if (!names.insert(tensor.name).second) {
      throw std::invalid_argument("tensor name " + in_quotes(tensor.name) + " stands twice or is reserved");
    }
    const std::int64_t end = begin + checked_bytes(tensor);
    begin_entry(tensor.name);
    text += "\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    begin = end;
  }
  text += "}";
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  if (text.size() > static_cast<std::size_t>(kLongestHeader)) {
    throw UsageError("can't write " + in_quotes(path) + ": its header would be " + std::to_string(text.size()) +
                     " bytes long, more than the 100 MB that are allowed; shorten names or metadata");
  }
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const SafetensorsFile& file) {
  const std::string header = header_text(path, file);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(header.size() >> (8 * i) & 0xFF);
  FileBeside out(path);
  out.write(length, sizeof length);
  out.write(header.data(), header.size());
  for (const StoredTensor& tensor : file.tensors) out.write(tensor.bytes.data(), tensor.bytes.size());
  out.commit();
}

void require_writable(const std::string& path) { FileBeside probe(path); }

}  // namespace muonwalk
