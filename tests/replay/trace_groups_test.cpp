// A run in which every call is of another kind and group, with messages of equal numbers in several groups, messages
// that cross, and calls without a duration: both files are sound, and have what was recorded.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "sim/replay/trace_writers.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/replay/perfetto_rules.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// dp 2 × tp 3, and a group of all. In every call, each member sends to the next one of its group.
RunTrace all_groups_run() {
  std::mt19937 random(11);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
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

TEST_CASE("both dialects: of calls of every kind and group both files have each call, as it was counted") {
  const RunTrace run = all_groups_run();
  std::vector<std::string> of_clocks, broken;  // the ranks' moments are drawn by lot, so arrows may go back in time
  const ReadTrace trace = read_by_perfettos_rules(chrome_trace_text(run), of_clocks);
  // An arrow for each message that both ends have recorded, and none that joins two groups: each sender has one in the
  // group dp, in tp and, of two calls, in the group of all; its posted messages were sent by nobody.
  const TemporaryFolder folder;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    CAPTURE(rank);
    const RankTrace& of_rank = run.ranks[rank];
    const auto is = [](SpanKind kind) { return [kind](const Span& span) { return span.kind == kind; }; };
    const auto count = [&](SpanKind kind) {
      return std::count_if(of_rank.spans.begin(), of_rank.spans.end(), is(kind));
    };
    const auto arrows = trace.arrows.find(static_cast<int>(rank));
    CHECK((arrows == trace.arrows.end() ? 0 : arrows->second) == count(SpanKind::sent));
    std::size_t transfers = 0;
    for (const char* thread : {"transfers", "transfers 2", "transfers 3"})
      transfers += trace.on(static_cast<int>(rank), thread).size();
    CHECK(transfers == 4);

    write_pytorch_dialect(folder.file("rank"), run, static_cast<int>(rank))->commit();
    const ReadTrace alone = read_by_perfettos_rules(read_text(folder.file("rank")), broken);
    CHECK(muonwalk::testing::all_of(broken) == "");
    std::size_t at = 0, kernels = 0;
    const std::vector<TraceSlice>& calls = trace.on(static_cast<int>(rank), "communication");
    REQUIRE(static_cast<std::ptrdiff_t>(calls.size()) == count(SpanKind::call));
    for (const Span& span : of_rank.spans) {
      if (span.kind != SpanKind::call) continue;
      const TraceSlice& call = calls[at++];
      const Group& group = of_rank.groups[span.group];
      CHECK(call.name == collective_name(span.collective));
      CHECK(call.begin == span.begin_ns - run.began_ns);
      CHECK(call.end == span.end_ns - run.began_ns);
      CHECK(call.args["group"] == group.name);
      CHECK(call.args["group_ranks"] == group_ranks_text(group));
      CHECK(call.args["type"] == element_name(span.type));
      CHECK(call.args["bytes"] == span.bytes);
      CHECK(call.args["messages"] == span.messages);
    }
    for (const auto& [thread, slices] : alone.slices)
      for (const TraceSlice& slice : slices) kernels += slice.category == "kernel" && slice.args["stream"] == 20;
    CHECK(kernels == calls.size());
  }
}
