// Records on their way through a pipe, which may cut them anywhere.

#include "sim/cluster/record.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace muonwalk::sim;

namespace {

Record record_of(const std::string& kind, nlohmann::json fields, std::size_t payload) {
  Record record{kind, std::move(fields), {}};
  for (std::size_t i = 0; i < payload; ++i) record.payload.push_back(static_cast<std::byte>(i * 7));
  return record;
}

std::vector<Record> samples() {
  return {record_of("show", {{"name", "w · 1"}, {"rows", 3}, {"real", 0.1}, {"list", {1, "two", nullptr}}}, 12),
          record_of("end of step", nlohmann::json::object(), 0), record_of("", {{"big", 9223372036854775807}}, 1),
          record_of("held", {{"negative", -5}, {"flag", true}}, 3000)};
}

void expect_same(const Record& a, const Record& b) {
  CHECK(a.kind == b.kind);
  CHECK(a.fields == b.fields);
  CHECK(a.payload == b.payload);
}

}  // namespace

TEST_CASE("record: encode and decode give back kind, fields and payload, one by one and in a row") {
  std::vector<std::byte> stream;
  for (const Record& record : samples()) {
    std::vector<std::byte> bytes = encode(record);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    const std::vector<Record> back = decode(bytes);
    REQUIRE(back.size() == 1);
    expect_same(back[0], record);
    CHECK(bytes.empty());
  }
  const std::vector<Record> back = decode(stream);
  REQUIRE(back.size() == samples().size());
  for (std::size_t i = 0; i < back.size(); ++i) expect_same(back[i], samples()[i]);
  CHECK(stream.empty());
}

TEST_CASE("record: without fields it comes back with none") {
  std::vector<std::byte> bytes = encode(Record{"kind", {}, {}});
  const std::vector<Record> back = decode(bytes);
  REQUIRE(back.size() == 1);
  CHECK(back[0].kind == "kind");
  CHECK(back[0].fields.empty());
}

TEST_CASE("record: a stream that is cut at any byte gives the same records once the rest has come") {
  std::vector<std::byte> stream;
  for (const Record& record : samples()) {
    const std::vector<std::byte> bytes = encode(record);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    CAPTURE(cut);
    const auto middle = stream.begin() + static_cast<std::ptrdiff_t>(cut);
    std::vector<std::byte> received(stream.begin(), middle);
    std::vector<Record> back = decode(received);
    if (cut < stream.size()) REQUIRE(back.size() < samples().size());
    received.insert(received.end(), middle, stream.end());
    for (Record& record : decode(received)) back.push_back(std::move(record));
    REQUIRE(back.size() == samples().size());
    for (std::size_t i = 0; i < back.size(); ++i) expect_same(back[i], samples()[i]);
    REQUIRE(received.empty());
  }
}

TEST_CASE("record: byte by byte") {
  std::vector<std::byte> received;
  std::vector<Record> back;
  for (const Record& record : samples())
    for (std::byte one : encode(record)) {
      received.push_back(one);
      for (Record& whole : decode(received)) back.push_back(std::move(whole));
    }
  REQUIRE(back.size() == samples().size());
  for (std::size_t i = 0; i < back.size(); ++i) expect_same(back[i], samples()[i]);
}

TEST_CASE("record: nothing that came is nothing to give") {
  std::vector<std::byte> nothing;
  CHECK(decode(nothing).empty());
}
