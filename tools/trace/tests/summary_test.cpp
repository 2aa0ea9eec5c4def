#include "tools/trace/summary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/near.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using muonwalk::testing::lesson_trace;
using muonwalk::testing::TraceWriting;

namespace {

constexpr std::int64_t kUs = 1000;

Summary summary_of(const TraceWriting& trace) {
  TemporaryFolder folder;
  return summarize({read_trace(trace.write(folder.file("trace.json")))});
}

bool has_note(const Summary& summary, const std::string& part) {
  return std::any_of(summary.notes.begin(), summary.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

std::int64_t left_out(const Summary& summary, const std::string& why) {
  const auto found = summary.counted.left_out.find(why);
  return found == summary.counted.left_out.end() ? 0 : found->second;
}

}  // namespace

TEST_CASE("summary: a kernel of zero length is counted and takes no time") {
  const Summary summary = summary_of(TraceWriting().kernel("empty", 10, 0).kernel("gemm", 20, 5));
  CHECK(summary.together.kernels == 2);
  CHECK(summary.together.computation_ns == 5 * kUs);
  CHECK(summary.together.span_ns == 15 * kUs);
}

TEST_CASE("summary: one collective that is an operator, a host range, a device range and a kernel counts once") {
  const Summary summary = summary_of(TraceWriting()
                                         .event("cpu_op", "c10d::allreduce_", 0, 8)
                                         .event("user_annotation", "nccl:all_reduce", 1, 5)
                                         .event("gpu_user_annotation", "nccl:all_reduce", 100, 50)
                                         .collective("allreduce", 100, 50, 1000, "Float", "[0, 1, 2, 3]", 4));
  CHECK(summary.together.collective_calls == 1);
  CHECK(summary.together.communication_sum_ns == 50 * kUs);
  CHECK(summary.together.computation_ns == 0);
  CHECK(summary.together.span_ns == 50 * kUs);
  REQUIRE(summary.together.collectives.size() == 1);
  const CollectiveLine& line = summary.together.collectives.front();
  CHECK(line.collective == Collective::all_reduce);
  CHECK(line.type == "float32");
  CHECK(line.group == "[0, 1, 2, 3]");
  CHECK(line.message_bytes == 4000);
  CHECK(line.algorithm_bandwidth().value() == near(0.08));  // 4000 B in 50 µs
  CHECK(line.bus_bandwidth().value() == near(0.12));        // × 2 · 3 / 4
  CHECK(has_note(summary, "0 kernels that compute"));
}

TEST_CASE("summary: collectives at the same time add up to more than their union") {
  const Summary summary = summary_of(TraceWriting()
                                         .collective("allreduce", 0, 10, 8, "Float", "[0, 1]", 2)
                                         .collective("_allgather_base", 5, 10, 8, "BFloat16", "[0, 1]", 2));
  CHECK(summary.together.communication_sum_ns == 20 * kUs);
  CHECK(summary.together.communication_ns == 15 * kUs);
  CHECK(summary.together.collectives.size() == 2);
  CHECK(has_note(summary, "at the same time"));
}

TEST_CASE("summary: the optimizer's share on the device and on the host are two figures") {
  const Summary summary = summary_of(TraceWriting()
                                         .event("user_annotation", "Full", 0, 200)
                                         .event("user_annotation", "Optimizer.step#Muon.step", 50, 2)
                                         .kernel("gemm", 0, 100)
                                         .event("gpu_user_annotation", "Optimizer.step#Muon.step", 100, 300)
                                         .collective("_allgather_base", 120, 80, 8, "BFloat16", "[0, 1]", 2)
                                         .kernel("gemm", 200, 200));
  const RankSummary& all = summary.together;
  CHECK(all.optimizer_device.time_ns == 300 * kUs);
  CHECK(all.optimizer_device.of_ns == 400 * kUs);
  CHECK(all.optimizer_device.communication_ns == 80 * kUs);
  CHECK(all.optimizer_host.time_ns == 2 * kUs);
  CHECK(all.optimizer_host.share() == near(0.01));
  CHECK(all.steps == 1);
}

TEST_CASE("summary: steps are ProfilerStep ranges, and where there are none, the optimizer's") {
  TraceWriting trace;
  trace.kernel("gemm", 0, 1);
  for (int i = 0; i < 3; ++i) trace.event("user_annotation", "Optimizer.step#AdamW.step", 10 * i, 1);
  CHECK(summary_of(trace).together.steps == 3);
  trace.event("user_annotation", "ProfilerStep#7", 0, 30);
  CHECK(summary_of(trace).together.steps == 1);
  CHECK(has_note(summary_of(TraceWriting().kernel("gemm", 0, 1)), "No steps were found"));
}

TEST_CASE("summary: ranks with different numbers of steps: all of them took as many as the one that took most") {
  for (const int longer : {0, 1, 2}) {
    CAPTURE(longer);
    TemporaryFolder folder;
    std::vector<std::string> paths;
    for (int rank = 0; rank < 3; ++rank) {
      TraceWriting trace(rank, 3);
      trace.kernel("gemm", 0, 1);
      for (int step = 0; step < (rank == longer ? 4 : 2); ++step)
        trace.event("user_annotation", "ProfilerStep#" + std::to_string(step), 10 * step, 9);
      paths.push_back(trace.write(folder.file("rank" + std::to_string(rank) + ".json")));
    }
    CHECK(summarize(read_traces(paths)).together.steps == 4);
  }
}

TEST_CASE("summary: messages between two ranks are not calls of all, so nobody's time in them is called waiting") {
  for (const char* name : {"send", "recv", "send_recv"}) {
    CAPTURE(name);
    TemporaryFolder folder;
    std::vector<std::string> paths;
    for (int rank = 0; rank < 2; ++rank)
      paths.push_back(TraceWriting(rank, 2)
                          .collective(name, 0, rank == 0 ? 40 : 5, 16, "Float", "[0, 1]", 2)
                          .collective("allreduce", 50, rank == 0 ? 30 : 10, 16, "Float", "[0, 1]", 2)
                          .write(folder.file("rank" + std::to_string(rank) + ".json")));
    const Summary summary = summarize(read_traces(paths));
    for (const RankSummary& rank : summary.ranks) {
      CHECK(rank.waiting.matched_calls == 1);
      CHECK(rank.waiting.unmatched_calls == 1);
      CHECK(rank.waiting.transfer_ns == 10 * kUs);
    }
    CHECK(summary.ranks[0].waiting.waiting_ns == 20 * kUs);
    CHECK(summary.ranks[1].waiting.waiting_ns == 0);
  }
}

TEST_CASE("summary: a straggler: the shortest of the ranks is the transfer, the rest is waiting") {
  TemporaryFolder folder;
  std::vector<std::string> paths;
  const double called_at[] = {0, 10, 70};  // rank 2 comes last, and all end at 100
  for (int rank = 0; rank < 3; ++rank)
    paths.push_back(TraceWriting(rank, 3)
                        .kernel("gemm", -5, 5)
                        .collective("allreduce", called_at[rank], 100 - called_at[rank], 16, "Float", "[0, 1, 2]", 3)
                        .write(folder.file("rank" + std::to_string(rank) + ".json")));
  const Summary summary = summarize(read_traces({paths[2], paths[0], paths[1]}));
  REQUIRE(summary.ranks.size() == 3);
  const std::int64_t waiting[] = {70, 60, 0};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(summary.ranks[rank].rank == static_cast<int>(rank));
    CHECK(summary.ranks[rank].waiting.transfer_ns == 30 * kUs);
    CHECK(summary.ranks[rank].waiting.waiting_ns == waiting[rank] * kUs);
  }
  CHECK(summary.together.waiting.matched_calls == 3);
  CHECK(summary.together.waiting.waiting_ns == 130 * kUs);
  CHECK_FALSE(has_note(summary, "One rank only"));
}

TEST_CASE("summary: calls of different groups are not set beside each other, and a missing call is said") {
  TemporaryFolder folder;
  const std::string zero = TraceWriting(0, 4)
                               .collective("allreduce", 0, 10, 16, "Float", "[0, 2]", 2)
                               .collective("allreduce", 20, 10, 16, "Float", "[0, 1]", 2)
                               .collective("allreduce", 40, 10, 16, "Float", "[0, 1]", 2)
                               .write(folder.file("0.json"));
  const std::string one =
      TraceWriting(1, 4).collective("allreduce", 0, 4, 16, "Float", "[0, 1]", 2).write(folder.file("1.json"));
  const Summary summary = summarize(read_traces({zero, one}));
  CHECK(summary.ranks[0].waiting.matched_calls == 1);
  CHECK(summary.ranks[0].waiting.unmatched_calls == 2);
  CHECK(summary.ranks[0].waiting.waiting_ns == 6 * kUs);
  CHECK(has_note(summary, "some ranks lack 1 of them"));
  CHECK(has_note(summary, "2 of 4 ranks only"));
}

TEST_CASE("summary: on the CPU, Gloo's collectives communicate and other operators compute") {
  const Summary summary = summary_of(TraceWriting(0, 2)
                                         .event("cpu_op", "aten::mm", 0, 30)
                                         .event("cpu_op", "c10d::allreduce_", 30, 90)
                                         .event("user_annotation", "gloo:all_reduce", 35, 80));
  CHECK(summary.together.basis == TimeBasis::host);
  CHECK(summary.together.computation_ns == 30 * kUs);
  CHECK(summary.together.communication_ns == 80 * kUs);
  CHECK(summary.together.collectives.front().collective == Collective::all_reduce);
  CHECK(has_note(summary, "0 kernels: operators on the CPU"));
  CHECK(has_note(summary, "without a size in bytes"));
}

TEST_CASE("summary: without kernels and collectives no time is told, and none is zero in silence") {
  const Summary summary = summary_of(TraceWriting().event("cpu_op", "aten::mm", 0, 30));
  CHECK(summary.together.basis == TimeBasis::none);
  CHECK(has_note(summary, "0 kernels and 0 collectives"));
}

TEST_CASE("summary: damaged events are left out, counted and said") {
  const Summary summary = summary_of(TraceWriting()
                                         .kernel("gemm", 0, 10)
                                         .kernel("gemm", 20, -5)
                                         .raw(R"("ph": "X", "cat": "kernel", "name": "gemm", "ts": 3)")
                                         .raw(R"("ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1e300)"));
  CHECK(summary.together.computation_ns == 10 * kUs);
  CHECK(left_out(summary, "damaged: a negative duration") == 1);
  CHECK(left_out(summary, "damaged: no duration (dur)") == 1);
  CHECK(left_out(summary, "damaged: a duration (dur) that is not a time") == 1);
  CHECK(has_note(summary, "3 events are damaged"));
}

TEST_CASE("summary: what has no duration of its own is left out, and said by its kind") {
  TraceWriting trace;
  trace.kernel("gemm", 0, 10);
  for (const char* phase : {"s", "t", "f", "C", "i", "I", "R", "B", "E", "b"})
    trace.raw(std::string(R"("ph": ")") + phase +
              R"(", "cat": "kernel", "name": "x", "pid": 0, "tid": 7, "ts": 3, "id": 1)");
  const Summary summary = summary_of(trace);
  CHECK(left_out(summary, "flows: arrows for viewers") == 3);
  CHECK(left_out(summary, "counters: curves for viewers") == 1);
  CHECK(left_out(summary, "instants: they have no duration") == 3);
  CHECK(left_out(summary, "begins and ends apart (B, E): only complete events (X) are counted") == 2);
  CHECK(left_out(summary, "other phases than X, M, s, t, f, C, i, B and E") == 1);
  CHECK(summary.together.kernels == 1);
  CHECK_FALSE(has_note(summary, "damaged"));
}

TEST_CASE("summary: durations whose sum could leave 64 bits are damaged from there on") {
  const double two_years = 6e13;  // in microseconds
  const Summary summary =
      summary_of(TraceWriting().kernel("one", 0, two_years).kernel("two", 0, two_years).kernel("three", 0, 5));
  CHECK(left_out(summary, "damaged: durations that add up to more than three years") == 1);
  CHECK(summary.together.kernels == 2);
}

TEST_CASE("summary: a barrier has no size, and is not a collective of which it is missed") {
  const auto without_size = [](const char* name) {
    return TraceWriting(0, 2).event("kernel", "ncclX", 0, 10,
                                    std::string(R"("Collective name": ")") + name + R"(", "Group size": 2)");
  };
  CHECK_FALSE(has_note(summary_of(without_size("barrier")), "without a size"));
  CHECK(has_note(summary_of(without_size("allreduce")), "1 of 1 collectives are in lines without a size"));
}

TEST_CASE("summary: a file that does not tell how large the world is does not hide what another tells") {
  for (const int larger : {0, 1}) {
    TemporaryFolder folder;
    std::vector<std::string> paths;
    for (int rank = 0; rank < 2; ++rank)
      paths.push_back(TraceWriting(rank, rank == larger ? 4 : 0)
                          .kernel("gemm", 0, 1)
                          .write(folder.file("rank" + std::to_string(rank) + ".json")));
    CHECK(summarize({read_trace(paths[0]), read_trace(paths[1])}).world_size == 4);
  }
}

TEST_CASE("summary: a process whose name does not say its rank has none, and its events are left out") {
  for (const std::string name : {"rank", "rank x", "rank -1", "rank 99999999999", "ranks 0", "Rank 0"}) {
    CAPTURE(name);
    std::string trace = lesson_trace();
    trace.replace(trace.find("rank 1 (dp 1)"), 13, name);
    const Summary summary = summarize({read_trace_text("the lesson's trace", trace)});
    CHECK(summary.ranks.size() == 1);
    CHECK(left_out(summary, "of a process whose name does not say its rank") == 4);
  }
}

TEST_CASE("summary: what a recording had no room for is said, in both dialects, and so is a failed check") {
  TemporaryFolder folder;
  const auto read = [&](const std::string& fields) {
    write_text(folder.file("t.json"),
               R"({"traceEvents": [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "rank 0"}},
                   {"ph": "X", "cat": "computation", "name": "a", "pid": 0, "tid": 1, "ts": 0, "dur": 2},
                   {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 1, "ts": 0, "dur": 2}], )" +
                   fields + "}");
    return summarize({read_trace(folder.file("t.json"))});
  };
  CHECK(has_note(read(R"("muonwalk": {"dropped_events": [0, 7, 4]})"), "lacks the last events of its run, 11 in all"));
  CHECK(has_note(read(R"("muonwalk": {"ok": false})"), "whose check failed"));
  const Summary whole = read(R"("muonwalk": {"dropped_events": [0, 0], "ok": true, "backend": "gloo"})");
  CHECK(whole.backend == "gloo");
  CHECK_FALSE(has_note(whole, "lacks"));
  CHECK_FALSE(has_note(whole, "check failed"));
}

TEST_CASE("summary: a rank that can't be one of the world is said") {
  CHECK(has_note(summary_of(TraceWriting(9, 4).kernel("gemm", 0, 10)), "says that it is of rank 9 of 4 ranks"));
  CHECK(has_note(summary_of(TraceWriting(-1, 4).kernel("gemm", 0, 10)), "it is taken for rank 0"));
  CHECK_FALSE(has_note(summary_of(TraceWriting(3, 4).kernel("gemm", 0, 10)), "one of the two"));
}

TEST_CASE("summary: the order of events, and of the keys in them, does not matter") {
  TemporaryFolder folder;
  write_text(folder.file("t.json"),
             R"({"traceEvents": [{"args": {"Group size": 2, "dtype": "Half", "Out msg nelems": 10, "In msg nelems": 5,
                 "Collective name": "all_gather"}, "dur": 4, "ts": 8, "name": "ncclX", "cat": "kernel", "ph": "X"},
                 {"dur": 2, "ts": 1, "name": "k", "cat": "kernel", "ph": "X"}],
                 "distributedInfo": {"world_size": 2, "rank": 1}})");
  const Summary summary = summarize({read_trace(folder.file("t.json"))});
  CHECK(summary.ranks.front().rank == 1);
  CHECK(summary.together.span_ns == 11 * kUs);
  CHECK(summary.together.collectives.front().message_bytes == 20);
}

TEST_CASE("summary: a lesson's trace: ranks by their names, bytes as in the ledger, waiting between ranks") {
  TemporaryFolder folder;
  write_text(folder.file("lesson.json"), lesson_trace());
  const Summary summary = summarize({read_trace(folder.file("lesson.json"))});
  CHECK(summary.dialect == TraceDialect::muonwalk);
  CHECK(summary.title == "lesson_09_full_step");
  REQUIRE(summary.ranks.size() == 2);
  CHECK(summary.ranks[1].label == "rank 1 (dp 1)");
  CHECK(summary.ranks[0].computation_ns == 30 * kUs);
  CHECK(summary.ranks[0].communication_ns == 40 * kUs);
  CHECK(summary.ranks[1].communication_ns == 20 * kUs);
  CHECK(summary.together.communication_ns == 60 * kUs);
  CHECK(summary.ranks[0].waiting.waiting_ns == 20 * kUs);
  CHECK(summary.ranks[1].waiting.transfer_ns == 20 * kUs);
  CHECK(summary.together.steps == 1);
  CHECK(summary.ranks[0].optimizer_device.time_ns == 50 * kUs);
  CHECK(summary.together.collectives.front().sent_bytes == 32);  // 16 per rank
  CHECK(summary.together.collectives.front().message_bytes == 64);
  CHECK(left_out(summary, "counters: curves for viewers") == 1);
}

TEST_CASE("summary: a lesson whose steps are named as the optimizer, without ranges in them: its share is known") {
  for (const bool named : {true, false}) {
    CAPTURE(named);
    std::string text = lesson_trace();
    const auto rename = [&](const std::string& from, const std::string& to) {
      std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
    };
    rename("optimizer: update", "update");
    if (named) rename("\"step 1\"", "\"optimizer step 1\"");
    const Summary summary = summarize({read_trace_text("the lesson's trace", text)});
    CHECK(summary.ranks[0].optimizer_device.ranges == (named ? 1 : 0));
    CHECK(summary.ranks[0].optimizer_device.time_ns == (named ? 100 : 0) * kUs);
  }
}

TEST_CASE("summary: a message under way is communication in the times, beside the calls that post it and wait for it") {
  // A lesson's rank: posted at 10 (irecv, 1 µs), computation from 11 to 60, a wait until 80. Another message of the
  // same length beside it, posted 1 µs later.
  const std::string event = R"({"ph":"X","pid":1,"tid":%,"cat":"%","name":"%","ts":%,"dur":%,"args":{}},)";
  const auto with = [&](std::vector<std::string> values) {
    std::string text = event;
    for (const std::string& value : values) text.replace(text.find('%'), 1, value);
    return text;
  };
  std::string events = R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"rank 0"}},)";
  events +=
      with({"2", "communication", "recv", "10", "1"}) + with({"3", "transfer", "message from rank 1", "10", "70"});
  events +=
      with({"2", "communication", "recv", "11", "1"}) + with({"4", "transfer", "message from rank 1", "11", "69"});
  events += with({"1", "computation", "work", "12", "48"}) + with({"2", "communication", "wait", "60", "20"});
  events.pop_back();
  const std::string trace =
      R"({"traceEvents":[)" + events + R"(],"muonwalk":{"version":1,"name":"lesson_17_overlap","ranks":1}})";
  const TraceFile file = read_trace_text("lesson.json", trace);
  const Summary summary = summarize({file});
  const RankSummary& all = summary.together;
  CHECK(all.communication_ns == 70 * kUs);  // from 10 to 80, once
  CHECK(all.communication_sum_ns == (70 + 69 + 1 + 1 + 20) * kUs);
  CHECK(all.overlap_ns == 48 * kUs);
  CHECK(all.span_ns == 70 * kUs);
  CHECK(all.idle_ns == 0);
  CHECK(all.collective_calls == 3);
  CHECK(all.transfers == 2);
  CHECK(summary.counted.of(EventClass::transfer) == 2);
  CHECK(has_note(summary, "calls and posted messages run at the same time as others"));
}

TEST_CASE("summary: of many ranks, each gets what its own events say, in whatever order the file has them") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::size_t ranks = 1 + random() % 40;
    std::vector<std::int64_t> computes(ranks), events_of(ranks);
    std::vector<std::string> events;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      events.push_back(
          fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"rank {}"}}}})", rank, rank));
      for (unsigned event = 1 + random() % 5; event > 0; --event) {
        const unsigned length = 1 + random() % 9;
        computes[rank] += length * kUs;
        ++events_of[rank];
        events.push_back(fmt::format(
            R"({{"ph":"X","pid":{},"tid":1,"cat":"computation","name":"work","ts":{},"dur":{},"args":{{}}}})", rank,
            10 * event, length));
      }
    }
    std::shuffle(events.begin(), events.end(), random);
    const TraceFile file = read_trace_text(
        "many.json", fmt::format(R"({{"traceEvents":[{}],"muonwalk":{{"version":1,"name":"lesson","ranks":{}}}}})",
                                 fmt::join(events, ","), ranks));
    const Summary summary = summarize({file});
    REQUIRE(summary.ranks.size() == ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CHECK(summary.ranks[rank].computation_ns == computes[rank]);
      CHECK(summary.ranks[rank].kernels == events_of[rank]);
      std::int64_t last = 0;
      for (const TraceEvent& event : file.events_of(static_cast<int>(rank))) {
        CHECK(event.rank == static_cast<int>(rank));
        CHECK(event.begin_ns >= last);
        last = event.begin_ns;
      }
    }
  }
}
