// A run in which every call is of another kind and group, with messages of equal numbers in several groups, messages
// that cross, and calls without a duration: both files, event by event, are those that are kept.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <tuple>

#include "sim/recording/trace_writers.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/recording/perfetto_rules.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::Draws;
using muonwalk::testing::expect_golden;

namespace {

// dp 2 × tp 3, and a group of all. In every call, each member sends to the next one of its group.
RunTrace all_groups_run() {
  Draws draw(11);
  RunTrace run;
  run.name = "lesson_75_<groups>";
  run.title = "All \"groups\"\n";
  run.grid = Grid().dp(2).tp(3);
  run.precision = "bf16";
  run.backend = "memory";
  run.began_ns = 10'000;
  run.parameters = {{"w\tup", 40, 60}, {"down", 7, 3}};
  run.ok = false;
  const int ranks = run.grid.size();
  const CollectiveKind kinds[] = {CollectiveKind::all_gather,     CollectiveKind::all_reduce,
                                  CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                  CollectiveKind::all_to_all,     CollectiveKind::barrier};
  const ElementType types[] = {ElementType::float32, ElementType::bfloat16, ElementType::bytes};
  for (int rank = 0; rank < ranks; ++rank) {
    RankTrace one;
    const Place place = run.grid.place(rank);
    one.label = fmt::format("rank {} (dp {}, tp {})", rank, place.dp, place.tp);
    for (const char* name : {"dp", "tp", "pp"}) one.groups.push_back(run.grid.group(name, rank));
    one.groups.push_back({"all", {0, 1, 2, 3, 4, 5}});
    one.groups.push_back({"none of this rank", {}});
    one.names = {"prepare", "optimizer step 1", "training step 20", "optimizer: cast", "gradients"};
    one.dropped = rank == 4 ? 7 : 0;
    one.full_since_ns = rank == 4 ? 13'000 : 0;
    std::int64_t now = 10'500 + draw(0, 99);
    std::map<int, int> numbers;  // of messages of collectives, by group
    for (int step = 0; step < 3; ++step) {
      const std::size_t of_step = one.spans.size();
      Span span;
      span.kind = SpanKind::step;
      span.name = step;
      span.begin_ns = now;
      span.held_at_begin = 100 + step;
      one.spans.push_back(span);
      now += draw(1, 50);
      std::size_t of_phase = 0;
      if (step > 0) {
        of_phase = one.spans.size();
        span.kind = SpanKind::phase;
        span.name = 2 + step;
        span.begin_ns = now;
        span.held_at_begin = 110 + step;
        one.spans.push_back(span);
        now += draw(0, 30);
      }
      for (int c = 0; c < 2; ++c) {
        const int number = 2 * step + c, group = number == 5 ? 3 : number % 4;
        const std::vector<int>& members = one.groups[static_cast<std::size_t>(group)].ranks;
        const int size = static_cast<int>(members.size());
        const int me = one.groups[static_cast<std::size_t>(group)].number_of(rank);
        Span call;
        call.kind = SpanKind::call;
        call.group = static_cast<std::uint8_t>(group);
        call.collective = kinds[number];
        call.type = types[(number + rank) % 3];
        call.elements_in = 10 * draw(1, 9) + rank;
        call.elements_out = draw(0, 1) == 0 ? call.elements_in + 5 : call.elements_in - 5;
        call.bytes = draw(10, 900);
        call.messages = draw(1, 5);
        call.begin_ns = now;
        call.end_ns = now + (number == 2 ? 0 : draw(20, 1500));
        call.held_at_begin = draw(0, 2);
        call.held_at_end = draw(3, 5);
        one.spans.push_back(call);
        for (const bool sent : {true, false}) {
          if (size == 1) continue;
          Span message;
          message.kind = sent ? SpanKind::sent : SpanKind::received;
          message.group = call.group;
          message.collective = call.collective;
          message.peer = members[static_cast<std::size_t>((me + (sent ? 1 : size - 1)) % size)];
          message.number = numbers[group];
          message.bytes = call.bytes;
          message.begin_ns = call.begin_ns + (sent ? 3 : 1);
          message.end_ns = call.end_ns - (sent ? 2 : 4);
          one.spans.push_back(message);
        }
        ++numbers[group];
        now = call.end_ns + draw(1, 60);
      }
      if (step > 0) one.spans[of_phase].end_ns = now, one.spans[of_phase].held_at_end = 120 + step;
      now += draw(0, 20);
      one.spans[of_step].end_ns = now;
      one.spans[of_step].held_at_end = 130 + step;
      now += draw(1, 99);
    }
    // Four messages that were posted: three of them under way at a time, and then one more on the first free thread.
    const std::int64_t begins[] = {10, 20, 30, 210}, ends[] = {300, 200, 400, 500};
    const int in_order[] = {1, 0, 2, 3};  // as they end
    for (const int i : in_order) {
      Span wait;
      wait.kind = SpanKind::call;
      wait.group = 1;
      wait.collective = CollectiveKind::wait;
      wait.begin_ns = now + ends[i] - 9;
      wait.end_ns = now + ends[i];
      one.spans.push_back(wait);
      Span posted;
      posted.kind = SpanKind::received;
      posted.group = 1;
      posted.collective = CollectiveKind::send;
      posted.peer = one.groups[1].ranks[static_cast<std::size_t>((one.groups[1].number_of(rank) + 2) % 3)];
      posted.number = i;
      posted.bytes = 100 * (i + 1);
      posted.begin_ns = now + begins[i];
      posted.end_ns = now + ends[i];
      one.spans.push_back(posted);
    }
    one.ledger.add("tp", CollectiveKind::all_gather, ElementType::float32, 3, {40 + rank, 41, 5, 6});
    one.ledger.add("all", CollectiveKind::barrier, ElementType::bytes, 1, {0, 0, 7, 8});
    run.ranks.push_back(one);
  }
  return run;
}

}  // namespace

TEST_CASE("both dialects: of calls of every kind and group, every event is the one that is kept") {
  const RunTrace run = all_groups_run();
  const TemporaryFolder folder;
  std::string text = chrome_trace_text(run);
  const nlohmann::json trace = nlohmann::json::parse(text);
  // An arrow for each message that both ends have recorded, and none that joins two groups: each sender has one in the
  // group dp, in tp and, of two calls, in the group of all; its posted messages were sent by nobody.
  std::map<std::string, int> events;
  for (const nlohmann::json& event : trace["traceEvents"]) ++events[event["ph"].get<std::string>()];
  CHECK(events["s"] == events["f"]);
  int sent = 0;
  for (const RankTrace& rank : run.ranks)
    for (const Span& span : rank.spans) sent += span.kind == SpanKind::sent ? 1 : 0;
  CHECK(events["s"] == sent);
  for (int rank = 3; rank < 5; ++rank) {
    write_pytorch_dialect(folder.file("rank"), run, rank)->commit();
    text += read_text(folder.file("rank"));
  }
  expect_golden("trace_groups.txt", text);
}
