#include "sim/cluster/record.hpp"

#include <cstdint>
#include <cstring>

namespace muonwalk::sim {
namespace {

struct Lengths {
  std::uint64_t fields = 0;
  std::uint64_t payload = 0;
};

}  // namespace

std::vector<std::byte> encode_front(const Record& record) {
  nlohmann::json fields = record.fields.is_null() ? nlohmann::json::object() : record.fields;
  fields["kind"] = record.kind;
  const std::vector<std::uint8_t> header = nlohmann::json::to_cbor(fields);
  const Lengths lengths{header.size(), record.payload.size()};
  std::vector<std::byte> bytes(sizeof lengths + header.size());
  std::memcpy(bytes.data(), &lengths, sizeof lengths);
  std::memcpy(bytes.data() + sizeof lengths, header.data(), header.size());
  return bytes;
}

std::vector<std::byte> encode(const Record& record) {
  std::vector<std::byte> bytes = encode_front(record);
  bytes.insert(bytes.end(), record.payload.begin(), record.payload.end());
  return bytes;
}

std::vector<Record> decode(std::vector<std::byte>& received) {
  std::vector<Record> records;
  std::size_t used = 0;
  Lengths lengths;
  while (received.size() - used >= sizeof lengths) {
    std::memcpy(&lengths, received.data() + used, sizeof lengths);
    const std::size_t whole = sizeof lengths + lengths.fields + lengths.payload;
    if (received.size() - used < whole) break;
    const auto* header = reinterpret_cast<const std::uint8_t*>(received.data() + used + sizeof lengths);
    const std::byte* payload = received.data() + used + sizeof lengths + lengths.fields;
    Record record;
    record.fields = nlohmann::json::from_cbor(header, header + lengths.fields);
    record.kind = record.fields.at("kind");
    record.fields.erase("kind");
    record.payload.assign(payload, payload + lengths.payload);
    records.push_back(std::move(record));
    used += whole;
  }
  received.erase(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(used));
  return records;
}

}  // namespace muonwalk::sim
