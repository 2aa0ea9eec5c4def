// The files of a trace, for a run made by hand.

#include "sim/replay/run_trace.hpp"

#include <doctest/doctest.h>

#include "sim/replay/trace_writers.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/near.hpp"
#include "tests/replay/perfetto_rules.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

Span named(SpanKind kind, int name, std::int64_t begin, std::int64_t end) {
  Span span;
  span.kind = kind;
  span.name = name;
  span.begin_ns = begin;
  span.end_ns = end;
  return span;
}

Span call(std::int64_t begin, std::int64_t end) {
  Span span;
  span.kind = SpanKind::call;
  span.collective = CollectiveKind::all_gather;
  span.type = ElementType::bfloat16;
  span.elements_in = 300;
  span.elements_out = 600;
  span.bytes = 600;
  span.messages = 1;
  span.begin_ns = begin;
  span.end_ns = end;
  return span;
}

Span message(SpanKind direction, int peer, std::int64_t begin, std::int64_t end) {
  Span span;
  span.kind = direction;
  span.peer = peer;
  span.bytes = 600;
  span.begin_ns = begin;
  span.end_ns = end;
  return span;
}

// Two ranks, one step of two phases; rank 1 comes late to the gather.
RunTrace two_ranks() {
  RunTrace run;
  run.name = "lesson_77_by_hand";
  run.grid = Grid().dp(2);
  run.began_ns = 1000;
  run.ranks.resize(2);
  for (int rank : {0, 1}) {
    RankTrace& of_rank = run.ranks[static_cast<std::size_t>(rank)];
    of_rank.label = rank == 0 ? "rank 0 (dp 0)" : "rank 1 (dp 1)";
    for (const char* name : {"dp", "tp", "pp"}) of_rank.groups.push_back(run.grid.group(name, rank));
    of_rank.names = {"optimizer step 12", "DP gather", "optimizer: apply"};
    const std::int64_t called = rank == 0 ? 2000 : 2600;
    of_rank.spans = {named(SpanKind::step, 0, 1500, 4000),
                     named(SpanKind::phase, 1, 1700, 3200),
                     call(called, 3000 + rank),
                     message(SpanKind::sent, 1 - rank, called + 10, 2999 + rank),
                     message(SpanKind::received, 1 - rank, called + 10, 3000 + rank),
                     named(SpanKind::phase, 2, 3200, 3900)};
  }
  return run;
}

}  // namespace

TEST_CASE("both files of a run made by hand say what happened, to the nanosecond") {
  const TemporaryFolder folder;
  const RunTrace run = two_ranks();
  write_chrome_trace(folder.file("all.json"), run)->commit();
  const ReadTrace all = read_by_perfettos_rules(read_text(folder.file("all.json")));
  CHECK(all.broken == "");
  REQUIRE(all.on(1, "communication").size() == 1);
  const TraceSlice& gather = all.on(1, "communication")[0];
  CHECK(gather.begin == 1600);  // since the beginning of the run
  CHECK(gather.end == 2001);
  CHECK(gather.args["group_ranks"] == "[0, 1]");
  CHECK(gather.args["message_bytes"] == 1200);  // the gathered whole
  CHECK(gather.args["elements"] == 300);
  CHECK(gather.args["algbw"].get<double>() == near(1200 / 401.0, 1e-5));
  CHECK(gather.args["busbw"].get<double>() == near(600 / 401.0, 1e-5));
  CHECK(all.on(1, "computation")[0].category == "step");
  CHECK(all.on(1, "computation")[1].category == "computation");
  CHECK(all.on(1, "computation")[2].category == "phase");
  CHECK(all.arrows.at(0) == 1);
  CHECK(all.arrows.at(1) == 1);
}

TEST_CASE("posted messages are slices from post to wait, on threads of their own where several are under way") {
  RunTrace run = two_ranks();
  RankTrace& rank = run.ranks[0];
  const auto posted = [&](std::int64_t begin, std::int64_t end, int number) {
    Span span = message(SpanKind::received, 1, begin, end);
    span.collective = CollectiveKind::send;
    span.number = number;
    return span;
  };
  const auto waits = [&](std::int64_t begin, std::int64_t end) {
    Span span = call(begin, end);
    span.collective = CollectiveKind::wait;
    span.elements_in = span.elements_out = span.bytes = 0;
    return span;
  };
  // A blocking recv, whose message is no more than its call; then three posted messages: two that cross, and one that
  // begins when the first one ends.
  Span recv = waits(3210, 3260);
  recv.collective = CollectiveKind::recv;
  rank.spans.insert(rank.spans.end(),
                    {recv, posted(3215, 3260, 0), waits(3400, 3500), posted(3300, 3500, 1), waits(3600, 3700),
                     posted(3350, 3700, 2), waits(3750, 3800), posted(3500, 3800, 3)});
  const TemporaryFolder folder;
  write_chrome_trace(folder.file("all.json"), run)->commit();
  const ReadTrace all = read_by_perfettos_rules(read_text(folder.file("all.json")));
  CHECK(all.broken == "");
  REQUIRE(all.on(0, "transfers").size() == 2);
  REQUIRE(all.on(0, "transfers 2").size() == 1);
  CHECK(all.on(0, "transfers 3").empty());
  CHECK(all.on(1, "transfers").empty());
  const TraceSlice& first = all.on(0, "transfers")[0];
  CHECK(first.category == "transfer");
  CHECK(first.name == "message from rank 1");
  CHECK(first.begin == 2300);
  CHECK(first.end == 2500);
  CHECK(first.args["bytes"] == 600);
  CHECK(all.on(0, "transfers")[1].begin == 2500);
  CHECK(all.on(0, "transfers 2")[0].end == 2700);
}

TEST_CASE("a step of the optimizer is told from other steps by its name") {
  for (const std::string title : {"optimizer step 9", "training step 5", "optimizer step", "optimizer step x", "step 3",
                                  "another optimizer step 3"}) {
    CAPTURE(title);
    CHECK(is_optimizer_step(title) == (title.find("optimizer step") == 0 || title.find("training step") == 0));
    RunTrace run = two_ranks();
    run.ranks[0].names[0] = title;
    const std::string chrome = chrome_trace_text(run);
    CHECK(chrome.find(std::string("\"cat\":\"") + (is_optimizer_step(title) ? "step" : "phase") + "\",\"name\":\"" +
                      title + "\"") != std::string::npos);
  }
}

TEST_CASE("names may hold anything: the file stays JSON, and gives them back, with what can't be seen made visible") {
  const std::string odd = "a \"quoted\" \\ name\nwith ‹×› and \x01";
  const std::string visible = "a \"quoted\" \\ name\\nwith ‹×› and \\x01";
  const TemporaryFolder folder;
  RunTrace run = two_ranks();
  run.name = run.title = odd;
  run.ranks[0].names[1] = odd;
  write_chrome_trace(folder.file("all.json"), run)->commit();
  const ReadTrace trace = read_by_perfettos_rules(read_text(folder.file("all.json")));
  CHECK(trace.broken == "");
  CHECK(trace.whole["muonwalk"]["name"] == visible);
  bool found = false;
  for (const auto& [thread, slices] : trace.slices)
    for (const TraceSlice& slice : slices) found = found || slice.name == visible;
  CHECK(found);
}

TEST_CASE("an arrow whose other end was not recorded is not drawn") {
  const TemporaryFolder folder;
  RunTrace run = two_ranks();
  run.ranks[1].spans.erase(run.ranks[1].spans.begin() + 4);  // what rank 1 received
  write_chrome_trace(folder.file("all.json"), run)->commit();
  const ReadTrace all = read_by_perfettos_rules(read_text(folder.file("all.json")));
  CHECK(all.broken == "");
  CHECK(all.arrows.count(0) == 0);
  CHECK(all.arrows.at(1) == 1);
}

TEST_CASE("a trace that can't be written leaves nothing behind") {
  const TemporaryFolder folder;
  CHECK_THROWS(write_chrome_trace(folder.file("none/all.json"), two_ranks()));
  write_chrome_trace(folder.file("all.json"), two_ranks());  // never committed
  CHECK(folder.names().empty());
}

TEST_CASE("a trace that is longer than what is written at a time has every event once, in a file as in a text") {
  RunTrace run = two_ranks();
  run.ranks.resize(1);
  std::vector<Span>& spans = run.ranks[0].spans;
  spans.assign(1, named(SpanKind::step, 0, 1500, 100'000'000));
  for (int i = 0; i < 3100; ++i) {
    Span one = call(2000 + 1000 * i, 2500 + 1000 * i);
    one.bytes = i;
    spans.push_back(one);
  }
  const TemporaryFolder folder;
  write_chrome_trace(folder.file("all.json"), run)->commit();
  const std::string text = chrome_trace_text(run);
  CHECK(text.size() > (std::size_t{1} << 20));
  CHECK((read_text(folder.file("all.json")) == text));
  const ReadTrace trace = read_by_perfettos_rules(text);
  CHECK(trace.broken == "");
  const auto slices = trace.on(0, "communication");
  REQUIRE(slices.size() == 3100);
  for (int i = 0; i < 3100; ++i) CHECK(slices[static_cast<std::size_t>(i)].args["bytes"] == i);
}

TEST_CASE("Span::message_bytes: the larger side of a call, and of all_to_all what goes in, in bytes of its type") {
  struct Case {
    CollectiveKind kind;
    ElementType type;
    std::int64_t in, out, bytes;
  };
  for (const Case& each : {Case{CollectiveKind::all_gather, ElementType::float32, 5, 20, 80},
                           Case{CollectiveKind::reduce_scatter, ElementType::bfloat16, 20, 5, 40},
                           Case{CollectiveKind::all_reduce, ElementType::bytes, 7, 7, 7},
                           Case{CollectiveKind::all_to_all, ElementType::float32, 3, 9, 12},
                           Case{CollectiveKind::all_to_all, ElementType::float32, 9, 3, 36},
                           Case{CollectiveKind::send, ElementType::bfloat16, 4, 0, 8},
                           Case{CollectiveKind::recv, ElementType::float32, 0, 4, 16},
                           Case{CollectiveKind::barrier, ElementType::bytes, 0, 0, 0}}) {
    Span span;
    span.collective = each.kind;
    span.type = each.type;
    span.elements_in = each.in;
    span.elements_out = each.out;
    CAPTURE(static_cast<int>(each.kind));
    CHECK(span.message_bytes() == each.bytes);

    // As the file names the type of its elements.
    RunTrace run = two_ranks();
    run.ranks[0].spans = {named(SpanKind::step, 0, 1500, 4000), span};
    run.ranks[0].spans[1].kind = SpanKind::call;
    run.ranks[0].spans[1].begin_ns = 2000, run.ranks[0].spans[1].end_ns = 3000;
    run.ranks[0].spans[1].bytes = 1000;
    const bool floats = each.type == ElementType::float32, halves = each.type == ElementType::bfloat16;
    CHECK(chrome_trace_text(run).find(std::string("\"type\":\"") +
                                      (floats   ? "float32"
                                       : halves ? "bfloat16"
                                                : "bytes") +
                                      "\",\"elements\":" + std::to_string(1000 / element_size(each.type)) + ",") !=
          std::string::npos);
  }
}

TEST_CASE("microseconds_text: nanoseconds as microseconds with three digits, also before the beginning") {
  const std::pair<std::int64_t, const char*> cases[] = {{0, "0.000"},      {1, "0.001"},           {999, "0.999"},
                                                        {1000, "1.000"},   {-1, "-0.001"},         {-999, "-0.999"},
                                                        {-1001, "-1.001"}, {12345678, "12345.678"}};
  for (const auto& [ns, text] : cases) CHECK(microseconds_text(ns) == text);
}
