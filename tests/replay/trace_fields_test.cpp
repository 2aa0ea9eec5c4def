// What both files of a trace say beside their slices, for runs of any grid, read back and compared with the run.

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "sim/replay/run_trace.hpp"
#include "sim/replay/trace_writers.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using Json = nlohmann::json;

namespace {

using Moments = std::vector<std::pair<std::string, std::int64_t>>;  // a time as the file has it, and a value

const CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                 CollectiveKind::broadcast,  CollectiveKind::all_to_all, CollectiveKind::barrier};

// Ranks that call, compute and hold whatever comes, on any grid.
RunTrace random_run(unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  RunTrace run;
  run.name = "lesson_" + std::to_string(seed);
  run.title = "Title " + std::to_string(seed);
  run.grid = Grid().dp(draw(1, 4)).tp(draw(1, 3)).pp(draw(1, 2));
  run.precision = draw(0, 1) == 0 ? "fp32" : "bf16";
  run.backend = draw(0, 1) == 0 ? "gloo" : "memory";
  run.began_ns = draw(0, 5000);
  run.ok = draw(0, 1) == 0;
  for (int rank = 0; rank < run.grid.size(); ++rank) {
    RankTrace one;
    one.label = "label " + std::to_string(rank);
    for (const char* name : {"dp", "tp", "pp"}) one.groups.push_back(run.grid.group(name, rank));
    if (draw(0, 1) == 0) one.groups.push_back({"of others", {}});  // the rank is not in it
    one.names = {"optimizer step 1", "phase"};
    one.dropped = draw(0, 2) == 0 ? draw(1, 100) : 0;
    std::int64_t now = run.began_ns + draw(0, 100);
    for (int i = draw(1, 6); i > 0; --i) {
      Span span;
      span.kind = SpanKind::call;
      span.group = draw(0, 2);
      span.collective = kKinds[draw(0, 5)];
      span.type = draw(0, 1) == 0 ? ElementType::float32 : ElementType::bfloat16;
      span.elements_in = draw(1, 50);
      span.elements_out = span.elements_in * one.groups[static_cast<std::size_t>(span.group)].size();
      span.bytes = draw(0, 1000);
      span.messages = draw(0, 9);
      span.held_at_begin = draw(0, 3);
      span.held_at_end = draw(0, 3);
      span.begin_ns = now;
      now += draw(1, 3000);
      span.end_ns = now;
      now += draw(1, 3000);
      one.spans.push_back(span);
      one.ledger.add(one.groups[static_cast<std::size_t>(span.group)].name, span.collective, span.type, 1,
                     {span.bytes, 2 * span.bytes + 1, span.messages, 3 * span.messages + 1});
    }
    run.ranks.push_back(one);
  }
  return run;
}

Moments counters_of(const Json& trace, int rank, const std::string& name, const std::string& unit) {
  Moments found;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "C" && event["pid"] == rank && event["name"] == name)
      found.emplace_back(event["ts"].dump(), event["args"].at(unit).get<std::int64_t>());
  return found;
}

std::string time_text(const RunTrace& run, std::int64_t moment) {
  return Json::parse(microseconds_text(moment - run.began_ns)).dump();
}

}  // namespace

TEST_CASE("chrome trace: what it says of the run, its ledgers, and its counters are the run's, on any grid") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const RunTrace run = random_run(seed);
    const Json trace = Json::parse(chrome_trace_text(run)), about = trace["muonwalk"];
    CHECK(about["name"] == run.name);
    CHECK(about["title"] == run.title);
    CHECK(about["ranks"] == run.grid.size());
    CHECK(about["grid"] == Json{{"dp", run.grid.dp()}, {"tp", run.grid.tp()}, {"pp", run.grid.pp()}});
    CHECK(about["precision"] == run.precision);
    CHECK(about["backend"] == run.backend);
    CHECK(about["ok"] == run.ok);
    REQUIRE(about["dropped_events"].size() == run.ranks.size());
    REQUIRE(about["ledger"].size() == run.ranks.size());
    for (int rank = 0; rank < run.grid.size(); ++rank) {
      CAPTURE(rank);
      const auto r = static_cast<std::size_t>(rank);
      const RankTrace& of_rank = run.ranks[r];
      CHECK(about["dropped_events"][r] == of_rank.dropped);
      Json ledger = Json::array();
      for (const LedgerLine& line : of_rank.ledger.lines())
        ledger.push_back({{"group", line.group},
                          {"collective", collective_name(line.kind)},
                          {"type", line.type == ElementType::float32 ? "float32" : "bfloat16"},
                          {"calls", line.calls},
                          {"bytes", line.traffic.bytes_sent},
                          {"messages", line.traffic.messages_sent}});
      CHECK(about["ledger"][r] == ledger);

      Moments sent, held;
      std::int64_t bytes = 0;
      for (const Span& span : of_rank.spans) {
        sent.emplace_back(time_text(run, span.end_ns), bytes += span.bytes);
        for (const auto& [moment, elements] :
             {std::pair(span.begin_ns, span.held_at_begin), std::pair(span.end_ns, span.held_at_end)})
          if (held.empty() || held.back().second != elements) held.emplace_back(time_text(run, moment), elements);
      }
      // Each call is a slice of its own, as it was counted.
      std::vector<Json> calls;
      for (const Json& event : trace["traceEvents"])
        if (event.value("cat", "") == "communication" && event["pid"] == rank) calls.push_back(event);
      REQUIRE(calls.size() == of_rank.spans.size());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const Span& span = of_rank.spans[i];
        const Group& group = of_rank.groups[span.group];
        const Json& args = calls[i]["args"];
        CHECK(calls[i]["name"] == collective_name(span.collective));
        CHECK(calls[i]["ts"].dump() == time_text(run, span.begin_ns));
        CHECK(args["group"] == group.name);
        CHECK(args["group_ranks"] == group_ranks_text(group));
        CHECK(args["type"] == element_name(span.type));
        CHECK(args["bytes"] == span.bytes);
        CHECK(args["messages"] == span.messages);
      }
      CHECK(counters_of(trace, rank, "bytes sent", "bytes") == sent);
      CHECK(counters_of(trace, rank, "elements held", "elements") == held);
    }
  }
}
