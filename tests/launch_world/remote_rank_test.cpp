#include "sim/world/remote_rank.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/world/agent_frames.hpp"
#include "sim/world/record_stream.hpp"

// An agent on another host, whose clock began at another time, and what the reporter makes of it.

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

struct Ends {
  FramedConnection reporter, agent;
};

Ends connected() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {FramedConnection(Socket(ends[0])), FramedConnection(Socket(ends[1]))};
}

void tell_time(FramedConnection& agent, double behind) {
  RankSnapshot snapshot;
  snapshot.at = monotonic_seconds() - behind;
  send_value(agent, AgentFrame::snapshot, snapshot);
}

void tell(FramedConnection& agent, Record record) {
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
  RecordWriter writer(pipe_ends[1]);
  REQUIRE(writer.write(record));
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
    for (const Record& record : rank.take_step(step))
      if (const Traced* traced = std::get_if<Traced>(&record)) batches.push_back(traced->batch);
  }
  return batches;
}

// Two steps of a rank, recorded at 1000 ns and 9000 ns by its own clock.
std::vector<SpanBatch> two_steps(const std::string& boot_of_agent) {
  Ends ends = connected();
  Hello hello, own;
  hello.boot = boot_of_agent;
  own.boot = "of the reporter";
  ProgressSlot slot;
  RemoteRank rank(ends.reporter, hello, own, slot);
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

TEST_CASE("what a rank on another host traced is moved to the reporter's clock, all of it by the same time") {
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
  const std::vector<SpanBatch> batches = two_steps("of the reporter");
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
    own.boot = "of the reporter";
    ProgressSlot slot;
    RemoteRank rank(ends.reporter, hello, own, slot);
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
