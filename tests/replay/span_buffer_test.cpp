// What a rank keeps of itself, handed over in parts; and what it computed between its calls, against a look at every
// nanosecond.

#include "sim/replay/span_buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/replay/run_trace.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

struct Slice {
  std::int64_t begin, end;
  std::string name;
  bool operator==(const Slice& other) const { return begin == other.begin && end == other.end && name == other.name; }
};

// Steps one after the other, with phases and calls in them, and calls between them; and what was computed.
struct RandomRank {
  RankTrace rank;
  std::vector<Slice> computed;

  explicit RandomRank(unsigned seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    rank.names = {"step a", "phase b", "step c", "phase d"};
    constexpr std::int64_t kLast = 600;
    std::vector<int> step(kLast, -1), phase(kLast, -1);  // whose name each nanosecond has
    std::vector<bool> calls(kLast, false), cut(kLast + 1, false);
    const auto add = [&](SpanKind kind, std::int64_t begin, std::int64_t end, int name) {
      Span span;
      span.kind = kind;
      span.begin_ns = begin, span.end_ns = end;
      span.name = name;
      rank.spans.push_back(span);
      if (kind == SpanKind::sent || kind == SpanKind::received) return;
      cut[static_cast<std::size_t>(begin)] = true;
      for (auto at = static_cast<std::size_t>(begin); at < static_cast<std::size_t>(end); ++at) {
        if (kind == SpanKind::call) calls[at] = true;
        if (kind == SpanKind::step) step[at] = name;
        if (kind == SpanKind::phase) phase[at] = name;
      }
    };
    std::int64_t now = draw(1, 9);
    const auto some_calls = [&](std::int64_t until) {
      while (draw(0, 2) > 0 && now + 12 < until) {
        now += draw(0, 4);
        const std::int64_t end = now + draw(1, 7);
        add(SpanKind::call, now, end, -1);
        for (int i = draw(0, 2); i > 0; --i)
          add(draw(0, 1) == 0 ? SpanKind::sent : SpanKind::received, now - draw(0, 1), end + draw(-1, 5), -1);
        now = end;
      }
    };
    for (int steps = draw(1, 4); steps > 0; --steps) {
      some_calls(now + 40);
      now += draw(0, 5);
      const std::int64_t end = now + draw(1, 90);
      add(SpanKind::step, now, end, 2 * draw(0, 1));
      now += draw(0, 3);
      while (draw(0, 3) > 0 && now + 5 < end) {
        some_calls(end);
        if (now >= end) break;
        const std::int64_t phase_end = std::min(end, now + draw(1, 40));
        add(SpanKind::phase, now, phase_end, 1 + 2 * draw(0, 1));
        now += draw(0, 2);
        some_calls(phase_end);
        now = std::max(now, phase_end) + draw(0, 3);
      }
      some_calls(end);
      now = std::max(now, end) + draw(0, 9);
    }
    std::int64_t known = kLast;
    if (draw(0, 3) == 0) {
      rank.dropped = draw(1, 5);
      rank.full_since_ns = known = draw(1, 200);
    }
    for (std::int64_t moment = 0; moment < known; ++moment) {
      const auto at = static_cast<std::size_t>(moment);
      if (step[at] < 0 || calls[at]) continue;
      const std::string& name = rank.names[static_cast<std::size_t>(phase[at] >= 0 ? phase[at] : step[at])];
      if (!computed.empty() && computed.back().end == moment && computed.back().name == name && !cut[at])
        ++computed.back().end;
      else
        computed.push_back({moment, moment + 1, name});
    }
  }
};

}  // namespace

TEST_CASE("computation: of any rank, each moment of a step that is not in a call, by the name of its phase or step") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const RandomRank random(seed);
    std::vector<Slice> found;
    for (const ComputationSlice& slice : computation_of(random.rank))
      found.push_back({slice.begin_ns, slice.end_ns, slice.name});
    REQUIRE(found.size() == random.computed.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(found[i].begin);
      CHECK(found[i] == random.computed[i]);
    }
  }
  CHECK(computation_of({}).empty());
}

TEST_CASE("a SpanBuffer knows a name that comes again, and hands over each entry once, and all names so far") {
  const MemoryMeter memory;
  SpanBuffer buffer(7, memory);
  for (const char* title : {"one", "two", "one", "three"}) buffer.close(buffer.open(SpanKind::step, title));
  const SpanBatch first = buffer.take();
  REQUIRE(first.spans.size() == 4);
  const int numbers[] = {0, 1, 0, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(first.spans[i].name == numbers[i]);
    CHECK(first.spans[i].kind == SpanKind::step);
    CHECK(first.spans[i].begin_ns > 0);
    CHECK(first.spans[i].end_ns >= first.spans[i].begin_ns);
  }
  CHECK(first.names == std::vector<std::string>{"one", "two", "three"});
  CHECK(first.dropped == 0);
  CHECK(first.full_since_ns == 0);

  for (const char* title : {"two", "four"}) buffer.close(buffer.open(SpanKind::phase, title));
  const SpanBatch second = buffer.take();
  REQUIRE(second.spans.size() == 2);
  CHECK(second.spans[0].kind == SpanKind::phase);
  CHECK(second.spans[0].name == 1);
  CHECK(second.spans[1].name == 3);
  CHECK(second.names == std::vector<std::string>{"one", "two", "three", "four"});
  CHECK(second.dropped == 0);
  CHECK(buffer.take().spans.empty());

  const Call call{"dp", CollectiveKind::all_gather, ElementType::float32, 1, 2, -1};
  const auto open = buffer.open_call(0, call);
  const auto none = buffer.open_call(0, call);
  CHECK(open != SpanBuffer::kNoRoom);
  CHECK(none == SpanBuffer::kNoRoom);
  buffer.close(none);
  buffer.close(open);
  const SpanBatch third = buffer.take();
  REQUIRE(third.spans.size() == 1);
  CHECK(third.spans[0].kind == SpanKind::call);
  CHECK(third.dropped == 1);
  CHECK(third.full_since_ns >= third.spans[0].begin_ns);
}

TEST_CASE("a SpanBuffer keeps what it has room for in the whole run, and counts the rest") {
  const MemoryMeter memory;
  SpanBuffer buffer(5, memory);
  const auto step = buffer.open(SpanKind::step, "step");
  const auto phase = buffer.open(SpanKind::phase, "phase");
  const Call all_reduce{"tp", CollectiveKind::all_reduce, ElementType::float32, 8, 8, -1};
  Message sent;
  sent.sent = true;
  sent.bytes = 16;
  const auto message = [&](std::int64_t number) {
    sent.number = number;
    sent.began_ns = 1 + number;
    buffer.message(1, all_reduce, sent, 3);
  };
  const auto first = buffer.open_call(1, all_reduce);
  message(0);
  message(1);
  message(2);  // no room, but counted in its call
  buffer.close(first);
  const auto second = buffer.open_call(1, all_reduce);
  message(3);
  buffer.close(second);
  buffer.close(phase);
  buffer.close(step);
  const SpanBatch batch = buffer.take();
  REQUIRE(batch.spans.size() == 5);
  CHECK(batch.dropped == 3);
  CHECK(batch.full_since_ns == 3);  // when the exchange of the first message without room began
  CHECK(batch.spans[2].bytes == 48);
  CHECK(batch.spans[2].messages == 3);
  CHECK(batch.spans[4].number == 1);
  CHECK(batch.names == std::vector<std::string>{"step", "phase"});
  for (std::size_t inner = 1; inner < 3; ++inner) {
    CHECK(batch.spans[inner - 1].begin_ns <= batch.spans[inner].begin_ns);
    CHECK(batch.spans[inner].end_ns <= batch.spans[inner - 1].end_ns);
  }
  buffer.open(SpanKind::step, "later");
  const auto without_room = buffer.open_call(1, all_reduce);
  message(4);  // of a call without room: it is counted in no other
  buffer.close(without_room);
  const SpanBatch later = buffer.take();
  CHECK(later.spans.empty());
  CHECK(later.dropped == 6);
  CHECK(later.full_since_ns == 3);  // still the first of all
  CHECK(later.names.size() == 2);
}

TEST_CASE("a SpanBuffer notes how much the rank holds when something begins and when it ends") {
  MemoryMeter memory;
  SpanBuffer buffer(5, memory);
  const MeterScope scope(memory);
  const Flat before(5);
  const auto step = buffer.open(SpanKind::step, "step");
  const auto phase = buffer.open(SpanKind::phase, "phase");
  const Flat within(7);
  buffer.close(phase);
  {
    const Flat later(3);
    const auto call = buffer.open_call(0, {"dp", CollectiveKind::barrier, ElementType::bytes, 0, 0, -1});
    buffer.close(call);
  }
  buffer.close(step);
  const SpanBatch batch = buffer.take();
  std::vector<std::pair<std::int64_t, std::int64_t>> held;
  for (const Span& span : batch.spans) held.emplace_back(span.held_at_begin, span.held_at_end);
  CHECK(held == std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 12}, {5, 12}, {15, 15}});
}

TEST_CASE("a SpanBuffer keeps all that is told of a call and of its messages, to whom and from whom") {
  const MemoryMeter memory;
  SpanBuffer buffer(9, memory);
  Message message;
  message.bytes = 24;
  message.number = 6;
  message.began_ns = 5;
  const Call gather{"dp", CollectiveKind::all_gather, ElementType::bfloat16, 7, 21, -1};
  message.sent = true;
  buffer.message(4, gather, message, 9);  // of no call: counted in none
  buffer.close(buffer.open_call(2, gather));
  buffer.message(2, gather, message, 9);  // its call has been closed
  const auto call = buffer.open_call(3, gather);
  message.sent = false;
  buffer.message(3, gather, message, 8);
  message.from_rank_to_rank = message.sent = true;
  buffer.message(3, gather, message, 7);
  buffer.close(call);
  const std::vector<Span> spans = buffer.take().spans;
  REQUIRE(spans.size() == 6);
  const int groups[] = {4, 2, 2, 3, 3, 3}, peers[] = {9, -1, 9, -1, 8, 7};
  const SpanKind kinds[] = {SpanKind::sent, SpanKind::call,     SpanKind::sent,
                            SpanKind::call, SpanKind::received, SpanKind::sent};
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const Span& span = spans[i];
    const bool is_call = span.kind == SpanKind::call;
    CHECK(span.kind == kinds[i]);
    CHECK(span.group == groups[i]);
    CHECK(span.peer == peers[i]);
    CHECK(span.type == ElementType::bfloat16);
    CHECK(span.collective == (i == 5 ? CollectiveKind::send : CollectiveKind::all_gather));
    CHECK(span.bytes == (!is_call || i == 3 ? 24 : 0));
    CHECK(span.messages == (i == 3 ? 1 : 0));
    CHECK(span.number == (is_call ? 0 : 6));
    CHECK(span.elements_in == (is_call ? 7 : 0));
    CHECK(span.elements_out == (is_call ? 21 : 0));
    CHECK(span.name == -1);
    CHECK(span.end_ns >= span.begin_ns);
    if (!is_call) CHECK(span.begin_ns == 5);
  }
}
