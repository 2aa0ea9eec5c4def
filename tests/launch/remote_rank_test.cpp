#include "sim/ranks/remote_rank.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/agent_frames.hpp"
#include "sim/ranks/report_stream.hpp"
#include "src/errors.hpp"

// An agent on another host, whose clock began at another time, and what the parent makes of it.

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

struct Ends {
  FramedConnection parent, agent;
};

Ends connected() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {FramedConnection(OpenFile(ends[0])), FramedConnection(OpenFile(ends[1]))};
}

void tell_time(FramedConnection& agent, double behind) {
  RankSnapshot snapshot;
  snapshot.at = monotonic_seconds() - behind;
  send_value(agent, AgentFrame::snapshot, snapshot);
}

void tell(FramedConnection& agent, Report report) {
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
  RecordWriter writer(pipe_ends[1]);
  REQUIRE(writer.write(report));
  REQUIRE(writer.flush());
  char bytes[4096];
  const ssize_t count = read(pipe_ends[0], bytes, sizeof bytes);
  REQUIRE(count > 0);
  agent.send(static_cast<std::uint8_t>(AgentFrame::records), bytes, static_cast<std::size_t>(count));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

Traced span_at(std::int64_t begin_ns) {
  Traced traced;
  Span span;
  span.begin_ns = begin_ns;
  span.end_ns = begin_ns + 50;
  traced.batch.spans = {span};
  traced.batch.full_since_ns = begin_ns + 70;
  return traced;
}

std::vector<SpanBatch> batches_of(RemoteRank& rank, int steps) {
  std::vector<SpanBatch> batches;
  for (int step = 1; step <= steps; ++step) {
    REQUIRE(rank.finished(step));
    for (const Report& report : rank.take_step(step))
      if (const Traced* traced = std::get_if<Traced>(&report)) batches.push_back(traced->batch);
  }
  return batches;
}

// Two steps of a rank, recorded at 1000 ns and 9000 ns by its own clock.
std::vector<SpanBatch> two_steps(const std::string& boot_of_agent) {
  Ends ends = connected();
  Hello hello, own;
  hello.boot = boot_of_agent;
  own.boot = "of the parent";
  ProgressSlot slot;
  RemoteRank rank(ends.parent, hello, own, slot);
  tell_time(ends.agent, 500.25);
  tell(ends.agent, span_at(1000));
  tell(ends.agent, EndOfStep{});
  tell_time(ends.agent, 500);  // this message took a quarter of a second less
  tell(ends.agent, span_at(9000));
  tell(ends.agent, EndOfStep{});
  ends.agent.flush_within(std::chrono::milliseconds(1000));
  while (!rank.finished(2)) rank.take_news();
  return batches_of(rank, 2);
}

}  // namespace

TEST_CASE("what a rank on another host traced is moved to the parent's clock, all of it by the same time") {
  const std::vector<SpanBatch> batches = two_steps("of another host");
  REQUIRE(batches.size() == 2);
  const Span first = batches[0].spans.at(0), second = batches[1].spans.at(0);
  const double moved = static_cast<double>(first.begin_ns - 1000) * 1e-9;
  CHECK(moved >= 500.25 - 1e-6);
  CHECK(moved < 560);  // what the messages took, on a machine however slow
  CHECK(first.end_ns - first.begin_ns == 50);
  CHECK(batches[0].full_since_ns - first.begin_ns == 70);
  CHECK(second.begin_ns - first.begin_ns == 8000);
}

TEST_CASE("ranks of one host have one clock, and their spans stay where they are") {
  const std::vector<SpanBatch> batches = two_steps("of the parent");
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].spans.at(0).begin_ns == 1000);
  CHECK(batches[1].spans.at(0).end_ns == 9050);
}

TEST_CASE("of two clocks, the message that took least of all so far says what they differ by") {
  // Thousands of seconds on the way, so that what a message takes besides does not matter.
  std::vector<int> taken = {1, 2, 3, 4, 5};
  do {
    Ends ends = connected();
    Hello hello, own;
    hello.boot = "of another host";
    own.boot = "of the parent";
    ProgressSlot slot;
    RemoteRank rank(ends.parent, hello, own, slot);
    int least = taken[0];
    for (const int thousands : taken) {
      CAPTURE(thousands);
      tell_time(ends.agent, 1000.0 * thousands);
      tell(ends.agent, Failed{Failed::Kind::other, std::to_string(thousands), 0});
      ends.agent.flush_within(std::chrono::milliseconds(1000));
      while (!rank.failure() || rank.failure()->message != std::to_string(thousands)) rank.take_news();
      least = std::min(least, thousands);
      CHECK(std::floor(rank.failure()->at / 1000) == least);
    }
  } while (std::next_permutation(taken.begin(), taken.end()));
}

namespace {

// A rank of an agent with the process number 4711 on the host ada.
struct AgentsRank {
  Ends ends = connected();
  ProgressSlot slot;
  RemoteRank rank;
  AgentsRank() : rank(ends.parent, hello(), Hello(), slot) {}
  static Hello hello() {
    Hello hello;
    hello.boot = "of another host";
    hello.host = "ada";
    hello.pid = 4711;
    return hello;
  }
  template <class Value>
  void tell_value(AgentFrame type, const Value& value) {
    send_value(ends.agent, type, value);
    rank.take_news();
  }
  // What the agent is told, without how much was taken.
  std::vector<Frame> told() {
    std::vector<Frame> frames;
    while (std::optional<Frame> frame = ends.agent.receive())
      if (frame->type != static_cast<std::uint8_t>(AgentFrame::taken)) frames.push_back(*frame);
    return frames;
  }
};

}  // namespace

TEST_CASE("all that an agent says of its rank is known of it: where it is, what it waits for, that it was stopped") {
  AgentsRank one;
  CHECK(one.rank.host() == "ada");
  CHECK_FALSE(one.rank.ended());
  CHECK(one.rank.file() == one.ends.parent.descriptor());
  CHECK(one.rank.heard_of());  // it has just said who it is
  CHECK_FALSE(one.rank.heard_of());
  RankSnapshot snapshot;
  snapshot.at = monotonic_seconds();
  snapshot.cpu_seconds = 2.5;
  snapshot.wants_processor = 1;
  snapshot.stop_signal = 19;
  snapshot.stage = ProgressSlot::Stage::running;
  snapshot.waits_for = 3;
  snapshot.waits_in = CollectiveKind::broadcast;
  snapshot.signs = 77;
  std::fill(std::begin(snapshot.step), std::end(snapshot.step), 's');
  one.tell_value(AgentFrame::snapshot, snapshot);
  CHECK(one.rank.heard_of());
  CHECK_FALSE(one.rank.heard_of());
  CHECK(one.rank.cpu_seconds() == 2.5);
  CHECK(one.rank.wants_processor());
  CHECK(one.rank.stop_signal() == 19);
  CHECK(one.slot.stage == ProgressSlot::Stage::running);
  CHECK(one.slot.waits_for == 3);
  CHECK(one.slot.waits_in == CollectiveKind::broadcast);
  CHECK(one.slot.signs == 77);
  CHECK(std::string(one.slot.step, sizeof one.slot.step - 1) == std::string(sizeof one.slot.step - 1, 's'));

  const Posted posted{"a key", {'a', '\0', 'b'}};
  one.rank.tell(posted);
  one.rank.say_goodbye();
  const std::vector<Frame> told = one.told();
  REQUIRE(told.size() == 2);
  CHECK(told[0].type == static_cast<std::uint8_t>(AgentFrame::posted));
  CHECK(std::string(told[0].bytes.begin(), told[0].bytes.end()) == std::string("\5\0\0\0a keya\0b", 12));
  CHECK(told[1].type == static_cast<std::uint8_t>(AgentFrame::goodbye));

  one.tell_value(AgentFrame::ended, int{7 << 8});
  CHECK(one.rank.ended());
  CHECK(one.rank.status() == 7 << 8);
  CHECK_FALSE(one.rank.stopped());
  CHECK(one.rank.out_of_sight().empty());
  CHECK(one.rank.file() == -1);
  CHECK(one.rank.wait_for_end(0));
  one.rank.say_goodbye();  // nobody is there for these
  one.rank.end();
  CHECK(one.told().empty());
}

TEST_CASE("a rank whose agent is gone has ended, and nobody knows how; one that is ended has its agent told so, once") {
  AgentsRank lost;
  { const FramedConnection gone = std::move(lost.ends.agent); }
  lost.rank.take_news();
  CHECK(lost.rank.ended());
  CHECK(lost.rank.status() == WatchedRank::kUnknownStatus);
  CHECK(lost.rank.out_of_sight() ==
        "the process 4711 that was started for it is gone, or its host is (closed by the other end)");

  AgentsRank ended;
  CHECK_FALSE(ended.rank.wait_for_end(0));
  for (int times = 0; times < 2; ++times) ended.rank.end();
  CHECK(ended.rank.ended());
  const std::vector<Frame> told = ended.told();
  REQUIRE(told.size() == 1);
  CHECK(told[0].type == static_cast<std::uint8_t>(AgentFrame::kill));

  AgentsRank strange;
  CHECK_THROWS_WITH_AS(strange.tell_value(AgentFrame::kill, 1), "what an agent has sent is nothing that agents send",
                       muonwalk::RunError);
  AgentsRank cut;
  CHECK_THROWS_AS(cut.tell_value(AgentFrame::ended, char{0}), muonwalk::RunError);  // shorter than it is
}
