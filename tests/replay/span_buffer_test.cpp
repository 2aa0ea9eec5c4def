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
  for (const char* title : {"one", "two", "one", "three"}) buffer.close(buffer.open_step(title));
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

  for (const char* title : {"two", "four"}) buffer.close(buffer.open_phase(title));
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

TEST_CASE("a SpanBuffer counts a message in the call that is open and has room, and in no other") {
  const MemoryMeter memory;
  SpanBuffer buffer(2, memory);
  const Call call{"dp", CollectiveKind::all_gather, ElementType::float32, 1, 2, -1};
  Message message;
  message.sent = true;
  message.bytes = 24;
  const auto first = buffer.open_call(0, call);
  buffer.close(first);
  const auto second = buffer.open_call(0, call);
  buffer.message(0, call, message, 1);
  message.sent = false;
  buffer.message(0, call, message, 1);
  buffer.close(second);
  const auto without_room = buffer.open_call(0, call);
  message.sent = true;
  buffer.message(0, call, message, 1);
  buffer.close(without_room);
  const SpanBatch batch = buffer.take();
  REQUIRE(batch.spans.size() == 2);
  CHECK(batch.spans[0].bytes == 0);
  CHECK(batch.spans[0].messages == 0);
  CHECK(batch.spans[1].bytes == 24);
  CHECK(batch.spans[1].messages == 1);
  CHECK(batch.dropped == 4);
}
