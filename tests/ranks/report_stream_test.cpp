// Records on their way through a pipe, which may cut them anywhere.

#include "sim/ranks/report_stream.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "src/errors.hpp"
#include "tests/cases.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i) * 0.5f - 7);
  return values;
}

Ledger ledger() {
  Ledger ledger;
  ledger.add("dp", CollectiveKind::all_gather, ElementType::bfloat16, 3, {1, 2, 3, 4});
  ledger.add("tp", CollectiveKind::broadcast, ElementType::float32, 5, {6, 7, 8, 9});
  return ledger;
}

// One record of each kind, with another value in every field; `values` numbers where the kind has any.
std::vector<Report> samples(std::size_t values = 3) {
  std::vector<Report> all;
  Shown shown("w · 1", {3, 4});
  shown.rows({1, 2}, 5).note("a note").from("before").from("and after").bytes(77);
  shown.block.flat = true;
  shown.block.spans = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  shown.parameters = {{"a parameter", 9}, {"another", 10}};
  shown.values = numbers(values);
  all.push_back(std::move(shown));
  all.push_back(Said{"a line"});
  all.push_back(PhaseEnded{"a phase", 0.25});
  all.push_back(RecordedMove{1, 2, "pp", "all_to_all", "bytes", 3, 4, 5});
  all.push_back(Traffic{1, 2, 3, 4});
  const std::vector<float> flat = numbers(2 * values);
  all.push_back(NamedMatrix{"m", Matrix(2, static_cast<Index>(values), Flat(flat.begin(), flat.end())), 8, 9});
  RankCost cost;
  cost.counted = ledger();
  cost.counted_peak = 10;
  cost.kernel_sent = 11;
  cost.header_sent = 12;
  cost.kilobytes = 13;
  all.push_back(std::move(cost));
  Traced traced{{{}, {"one", "two"}, 3, 4}, ledger()};
  for (std::size_t i = 0; i < values; ++i) {
    Span span;
    std::memset(static_cast<void*>(&span), 0, sizeof span);  // the gaps between its members, too
    span.begin_ns = static_cast<std::int64_t>(i);
    traced.batch.spans.push_back(span);
  }
  all.push_back(std::move(traced));
  all.push_back(Posted{"a key", std::vector<char>(values, 'v')});
  all.push_back(Failed{Failed::Kind::peer_lost, "it broke", 1.5});
  all.push_back(EndOfStep());
  return all;
}

// What a RecordWriter sends of these records.
std::vector<std::byte> sent(std::vector<Report> reports) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::thread rank([&] {
    RecordWriter writer(ends[1]);
    for (Report& report : reports) writer.write(report);
    writer.flush();
    close(ends[1]);
  });
  std::vector<std::byte> stream;
  std::byte chunk[4096];
  for (ssize_t got = 0; (got = read(ends[0], chunk, sizeof chunk)) > 0;)
    stream.insert(stream.end(), chunk, chunk + got);
  rank.join();
  close(ends[0]);
  return stream;
}

// What a ReportReader makes of a stream that comes in pieces of at most `piece()` bytes.
std::vector<Report> received(const std::vector<std::byte>& stream, const std::function<std::size_t()>& piece) {
  ReportReader reader;
  std::vector<Report> all;
  for (std::size_t at = 0; at < stream.size();) {
    const auto [place, room] = reader.room();
    if (room == 0) FAIL("the reader has no room for what is to come");
    const std::size_t count = std::min({room, piece(), stream.size() - at});
    std::memcpy(place, &stream[at], count);
    at += count;
    reader.took(count);
    for (Report& report : reader.take()) all.push_back(std::move(report));
  }
  return all;
}

void expect_samples(std::vector<Report> back, std::size_t values = 3) {
  REQUIRE(back.size() == std::variant_size_v<Report>);
  for (std::size_t kind = 0; kind < back.size(); ++kind) REQUIRE(back[kind].index() == kind);
  CHECK(sent(std::move(back)) == sent(samples(values)));
}

}  // namespace

TEST_CASE("records: every field of every kind comes back") {
  const std::vector<Report> back = received(sent(samples()), [] { return 1 << 20; });
  const auto& shown = std::get<Shown>(back[0]);
  CHECK(shown.block.name == "w · 1");
  CHECK(shown.block.rows == 3);
  CHECK(shown.block.cols == 4);
  CHECK(shown.block.flat);
  CHECK(shown.block.bytes == 77);
  CHECK(shown.block.unit == "rows");
  CHECK(shown.block.begin == 1);
  CHECK(shown.block.end == 2);
  CHECK(shown.block.of == 5);
  CHECK(shown.block.note == "a note");
  CHECK(shown.has_bar);
  CHECK(shown.made_of == std::vector<std::string>{"before", "and after"});
  REQUIRE(shown.block.spans->size() == 2);
  const RecordedSpan span = (*shown.block.spans)[1];
  CHECK(std::vector<Index>{span.tensor, span.begin, span.end, span.first} == std::vector<Index>{5, 6, 7, 8});
  REQUIRE(shown.parameters.size() == 2);
  CHECK(shown.parameters[1].name == "another");
  CHECK(shown.parameters[1].number == 10);
  CHECK(shown.values == numbers(3));
  CHECK(std::get<Said>(back[1]).line == "a line");
  CHECK(std::get<PhaseEnded>(back[2]).name == "a phase");
  CHECK(std::get<PhaseEnded>(back[2]).seconds == 0.25);
  const auto& move = std::get<RecordedMove>(back[3]);
  CHECK(std::vector<long long>{move.from, move.to, move.elements, move.bytes, move.call} ==
        std::vector<long long>{1, 2, 3, 4, 5});
  CHECK(std::vector<std::string>{move.group, move.collective, move.type} ==
        std::vector<std::string>{"pp", "all_to_all", "bytes"});
  CHECK(std::get<Traffic>(back[4]) == Traffic{1, 2, 3, 4});
  const auto& held = std::get<NamedMatrix>(back[5]);
  CHECK(held.name == "m");
  CHECK(held.first_row == 8);
  CHECK(held.first_col == 9);
  CHECK(same_bits(held.matrix, std::get<NamedMatrix>(samples()[5]).matrix));
  const auto& cost = std::get<RankCost>(back[6]);
  CHECK(first_difference(ledger(), cost.counted).empty());
  CHECK(cost.counted_peak == 10);
  CHECK(cost.kernel_sent == 11);
  CHECK(cost.header_sent == 12);
  CHECK(cost.kilobytes == 13);
  const auto& traced = std::get<Traced>(back[7]);
  CHECK(traced.batch.names == std::vector<std::string>{"one", "two"});
  CHECK(traced.batch.dropped == 3);
  CHECK(traced.batch.full_since_ns == 4);
  REQUIRE(traced.batch.spans.size() == 3);
  CHECK(traced.batch.spans[2].begin_ns == 2);
  CHECK(first_difference(ledger(), traced.ledger).empty());
  const auto& posted = std::get<Posted>(back[8]);
  CHECK(posted.key == "a key");
  CHECK(posted.value == std::vector<char>{'v', 'v', 'v'});
  const auto& failed = std::get<Failed>(back[9]);
  CHECK(failed.kind == Failed::Kind::peer_lost);
  CHECK(failed.message == "it broke");
  CHECK(failed.at == 1.5);
}

TEST_CASE("records: a stream in pieces of any size gives the same records, with few values and with many") {
  for (const std::size_t values : {0, 1, 700, 100000}) {
    CAPTURE(values);
    const std::vector<std::byte> stream = sent(samples(values));
    if (values < 1000) expect_samples(received(stream, [] { return 1; }), values);
    for (unsigned seed = 0; seed < testing::cases(10u); ++seed) {
      CAPTURE(seed);
      std::mt19937 random(seed);
      const unsigned most = 1u << (seed * 2);
      expect_samples(received(stream, [&] { return 1 + random() % most; }), values);
    }
  }
}

TEST_CASE("records: as long as a byte is missing, so is its record") {
  const std::vector<std::byte> stream = sent(samples());
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    const std::vector<std::byte> part(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(cut));
    CHECK(received(part, [] { return 1 << 20; }).size() < samples().size());
  }
}

TEST_CASE("records: long values are read to where they stay, not through a buffer") {
  std::vector<Report> one;
  one.push_back(NamedMatrix{"m", Matrix(1000, 1000), 0, 0});
  const std::vector<std::byte> stream = sent(std::move(one));
  ReportReader reader;
  const std::size_t begin = 4096;
  std::memcpy(reader.room().first, stream.data(), begin);
  reader.took(begin);
  const auto [place, room] = reader.room();
  CHECK(room == stream.size() - begin);
  std::memcpy(place, &stream[begin], room);
  reader.took(room);
  const std::vector<Report> whole = reader.take();
  REQUIRE(whole.size() == 1);
  const Matrix& matrix = std::get<NamedMatrix>(whole[0]).matrix;
  CHECK(place + room == reinterpret_cast<const std::byte*>(matrix.data() + matrix.size()));
}

TEST_CASE("records: bytes that are not a record are refused, or wait for more; nothing is read beyond them") {
  const std::vector<std::byte> stream = sent(samples());
  int refused = 0;
  // A changed length may ask for gigabytes, and that takes its time.
  for (unsigned seed = 0; seed < testing::cases(600u); ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<std::byte> broken = stream;
    for (unsigned i = 0; i <= random() % 3; ++i) broken[random() % broken.size()] = static_cast<std::byte>(random());
    try {
      received(broken, [] { return 1 << 20; });
    } catch (const RunError&) {
      ++refused;
    } catch (const std::bad_alloc&) {  // a length that was changed: more than any machine has
      ++refused;
    } catch (const std::length_error&) {
      ++refused;
    }
  }
  CHECK(refused > testing::cases(100));
}
