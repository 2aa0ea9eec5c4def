#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muonwalk::sim {

/// What a rank tells the parent: a kind, some fields, and values as raw bytes. Ranks that are processes send records
/// through a pipe, threads hand them over; the parent prints them in rank order either way.
struct Record {
  std::string kind;                ///< "show", "held", …: who reads it, and how
  nlohmann::json fields;           ///< what the kind has besides values
  std::vector<std::byte> payload;  ///< values, as they lie in memory
};

/// The bytes of a record as they go through a pipe: two lengths, the fields as CBOR, the payload.
std::vector<std::byte> encode(const Record& record);

/// The same without the payload, for a sender that writes a long payload from where it lies.
std::vector<std::byte> encode_front(const Record& record);

/// Cuts complete records off the front of `received`, in order; what is incomplete stays.
std::vector<Record> decode(std::vector<std::byte>& received);

}  // namespace muonwalk::sim
