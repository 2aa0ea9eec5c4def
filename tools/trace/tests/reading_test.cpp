// What a trace says, and what is kept of it: a table for each dialect has what is written beside what is read.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/near.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/summary.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// An event in words, or "".
std::string told(const TraceFile& file, const TraceEvent& event) {
  std::string text = fmt::format("{} '{}' {} + {} ns", event_class_name(event.event_class), file.name_of(event),
                                 event.begin_ns, event.duration_ns);
  if (const CollectiveCall* call = file.call_of(event))
    text += fmt::format(": {} of {} '{}' in '{}' '{}', message {}, sent {}", collective_text(call->collective),
                        call->group_size, file.text_of(call->type), file.text_of(call->group),
                        file.text_of(call->group_name), call->message_bytes, call->sent_bytes);
  return text;
}

// What is written, as the inside of one event, and what is kept of it: the event in words, or why it is left out.
struct Written {
  const char* event;
  std::string kept;
};

void expect_kept(const std::vector<Written>& table, const std::string& head, const std::string& anchor) {
  for (const Written& row : table) {
    CAPTURE(row.event);
    const TraceFile file =
        read_trace_text("made up", fmt::format("{{{}, \"traceEvents\": [{}, {}]}}", head, anchor, row.event));
    std::string kept;
    for (const TraceEvent& event : file.events)
      if (file.name_of(event) != "anchor") kept += told(file, event);
    for (const auto& [why, events] : file.left_out)
      if (why.rfind("metadata", 0) != 0) kept += fmt::format("{}× {}", events, why);
    CHECK(kept == row.kept);
  }
}

std::string refusal_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const muonwalk::UsageError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { read_trace_text("made up", text); });
}

}  // namespace

TEST_CASE("reading: PyTorch's dialect: each kind of event, argument and damage has its class, its figures or its why") {
  const std::string unknown = ": no class of events that is known";
  expect_kept(
      {{R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 10.125, "dur": 3, "args": {"dtype": "Float"}})",
        "host operator 'aten::mm' 10125 + 3000 ns"},
       // Operators have the arguments of the kernel that they start; once is enough.
       {R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 2, "dur": 6.5,
            "args": {"Collective name": "allreduce", "In msg nelems": 96, "dtype": "Float", "Group size": 2}})",
        "host operator 'record_param_comms' 2000 + 6500 ns"},
       {R"({"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "ts": 21, "dur": 5,
            "args": {"Collective name": "allreduce", "In msg nelems": 12, "dtype": "Long", "Group size": 3,
            "Process Group Name": 4, "Process Group Description": "default", "Process Group Ranks": "[1, 3, 5]"}})",
        "host collective 'gloo:all_reduce' 21000 + 5000 ns: all_reduce of 3 'int64' in '[1, 3, 5]' '4', message 96, "
        "sent -1"},
       {R"({"ph": "X", "cat": "gpu_memset", "name": "Memset", "pid": "1.5", "tid": 1.5, "ts": -2, "dur": 1e0})",
        "copy 'Memset' -2000 + 1000 ns"},
       {R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": 40, "dur": 12.0006, "args": {"stream": 7}})",
        "computation 'gemm' 40000 + 12001 ns"},
       // Of what goes in and what comes out, the larger is the message.
       {R"({"ph": "X", "cat": "kernel", "name": "ncclX", "ts": 60, "dur": 9, "args": {"Collective name":
            "_reduce_scatter_base", "In msg nelems": 640, "Out msg nelems": 80, "dtype": "BFloat16", "Group size": "8",
            "Process Group Name": "dp", "Process Group Ranks": "[0, 1, 2, ...]"}})",
        "communication 'ncclX' 60000 + 9000 ns: reduce_scatter of 8 'bfloat16' in '[0, 1, 2, ...]' 'dp', message 1280, "
        "sent -1"},
       {R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Broadcast", "ts": 7, "dur": 2,
            "args": {"dtype": "Double", "Out msg nelems": 5, "Group size": -4, "Process Group Ranks": "[3]"}})",
        "communication 'ncclDevKernel_Broadcast' 7000 + 2000 ns: broadcast of 0 'float64' in '[3]' '', message 40, "
        "sent -1"},
       // Neither a collective nor ranks: nothing is said of a call.
       {R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "ts": 7, "dur": 2,
            "args": {"Process Group Name": "alone", "dtype": "Half", "In msg nelems": 5}})",
        "communication 'ncclDevKernel_SendRecv' 7000 + 2000 ns"},
       // The largest size that fits into 64 bits, and one that does not.
       {R"({"ph": "X", "cat": "kernel", "name": "nccl", "ts": 8, "dur": 2, "args": {"Collective name": "reduce",
            "In msg nelems": 2305843009213693950, "dtype": "Float", "Group size": 9999999999}})",
        "communication 'nccl' 8000 + 2000 ns: reduce of 2147483647 'float32' in '' '', message 9223372036854775800, "
        "sent -1"},
       {R"({"ph": "X", "cat": "kernel", "name": "nccl", "ts": 8, "dur": 2,
            "args": {"Collective name": "reduce", "In msg nelems": 2305843009213693951, "dtype": "Float"}})",
        "communication 'nccl' 8000 + 2000 ns: reduce of 0 'float32' in '' '', message -1, sent -1"},
       {R"({"ph": "X", "cat": "python_function", "name": "train.py: 7", "ts": 2, "dur": 80})",
        "1× python_function: lines of the program, around the operators"},
       {R"({"ph": "X", "cat": "step", "name": "a lesson's", "ts": 7, "dur": 1})", "1× step" + unknown},
       {R"({"ph": "X", "name": "without", "ts": 9, "dur": 1})", "1× no category" + unknown},
       {R"({"ph": "X", "cat": "kernel", "ts": 1, "dur": 1})", "1× damaged: no name"},
       {R"({"ph": "X", "cat": "kernel", "name": "x", "ts": "1", "dur": 1})",
        "1× damaged: no begin (ts), or one that is not a time"},
       {R"({"ph": "Q"}, {}, 17, "text", null, [1, [2]])",
        "1× damaged: no phase (ph)3× no object, where an event should be1× other phases than X, M, s, t, f, C, i, B "
        "and E"}},
      R"("recorded_by": {"by": [7]}, "distributedInfo": {"backend": "nccl", "rank": "3", "world_size": "8"})",
      R"({"ph": "X", "cat": "kernel", "name": "anchor", "ts": 0, "dur": 1})");
}

TEST_CASE("reading: a lesson's dialect: each kind of event has its class and its figures, whatever its thread") {
  expect_kept(
      {{R"({"ph": "X", "cat": "step", "name": "step 1", "pid": 77, "tid": 1, "ts": 0, "dur": 50})",
        "step 'step 1' 0 + 50000 ns"},
       {R"({"ph": "X", "cat": "phase", "name": "optimizer: gather", "pid": 77, "tid": "x", "ts": 0, "dur": 30})",
        "host range 'optimizer: gather' 0 + 30000 ns"},
       {R"({"ph": "X", "cat": "communication", "name": "all_gather over dp", "pid": 77, "ts": 3, "dur": 4,
            "args": {"collective": "all_gather", "group": "dp", "group_size": 4, "group_ranks": "[0, 4]",
            "type": "bfloat16", "elements": 6, "bytes": 12, "message_bytes": 48, "algbw": 1.5}})",
        "communication 'all_gather over dp' 3000 + 4000 ns: all_gather of 4 'bfloat16' in '[0, 4]' 'dp', message 48, "
        "sent 12"},
       {R"({"ph": "X", "cat": "communication", "name": "wait", "pid": 77, "ts": 9, "dur": 5})",
        "communication 'wait' 9000 + 5000 ns"},
       {R"({"ph": "X", "cat": "transfer", "name": "message", "pid": 77, "ts": 3, "dur": 11})",
        "transfer 'message' 3000 + 11000 ns"},
       {R"({"ph": "X", "cat": "kernel", "name": "of a device", "pid": 77, "ts": 1, "dur": 1})",
        "1× kernel: no class of events that is known"},
       {R"({"ph": "X", "cat": "computation", "name": "of nobody", "pid": 79, "ts": 1, "dur": 1})",
        "1× of a process whose name does not say its rank"}},
      R"("muonwalk": {"name": "lesson_12_odd"})",
      R"({"ph": "X", "cat": "computation", "name": "anchor", "pid": 77, "ts": 0, "dur": 1},
         {"ph": "M", "name": "process_name", "pid": 77, "args": {"name": "rank 12: dp 3"
}
},
         {"ph": "M", "name": "process_name", "pid": 79, "args": {"name": "rank x"}})");
}

TEST_CASE("reading: what a file says of itself, wherever it stands in the file") {
  const TraceFile lesson = read_trace_text("made up", R"({"traceEvents": [
      {"ph": "X", "cat": "computation", "name": "a", "pid": 77, "tid": 1, "ts": 0, "dur": 1},
      {"ph": "M", "name": "process_name", "pid": 77, "args": {"name": "rank 12: dp 3"
}
},
      {"ph": "M", "name": "process_name", "pid": 78, "args": {"name": "rank 9"}}],
      "otherData": {
  "muonwalk" : {
    "name" : "lesson_12_odd",
             "backend" : "memory",
                         "deeper" : {"name" : "no title"},
                                    "dropped_events" : [ -5, "3", 4, null ],
                                                       "parameters"
        : [
          {"name" : "w0", "rows" : 4, "cols" : 2}, {"name" : "no columns", "rows" : 3},
          {"name" : "text", "rows" : "7", "cols" : "8"}, {"rows" : 0, "cols" : 8}, 9
        ]
  }
}
})");
  CHECK((lesson.dialect == TraceDialect::muonwalk));
  CHECK(lesson.title == "lesson_12_odd");
  CHECK(lesson.backend == "memory");
  REQUIRE(lesson.ranks.size() == 2);  // in ascending order
  CHECK(lesson.ranks[0].rank == 9);
  CHECK(lesson.ranks[1].label == "rank 12: dp 3");
  CHECK(lesson.events.at(0).rank == 1);
  REQUIRE(lesson.notes.size() == 1);
  CHECK(lesson.notes[0].find("7 in all") != std::string::npos);

  const auto rank_of = [](const std::string& said) {
    return read_trace_text("made up", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1,
        "dur": 2}], "distributedInfo": {)" +
                                          said + "}}");
  };
  CHECK(rank_of(R"("rank": 3, "world_size": 4)").ranks[0].rank == 3);
  CHECK(rank_of(R"("rank": 3, "world_size": 4)").notes.empty());
  CHECK(rank_of(R"("rank": 3000000000, "world_size": 4000000000)").ranks[0].world_size == 2147483647);
  CHECK(rank_of(R"("rank": -3, "world_size": -4)").ranks[0].world_size == 0);
  CHECK(rank_of(R"("rank": -3, "world_size": -4)").notes.size() == 1);
  // A trace may be the array alone, or say its events twice; a name's tally has all of its events, the uncounted too.
  const TraceFile twice = read_trace_text("made up", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a",
      "ts": 1, "dur": 2}], "traceEvents": [{"ph": "X", "cat": "overhead", "name": "a", "ts": 5, "dur": 3}]})");
  CHECK(twice.events.size() == 1);
  CHECK(twice.tallies.at(static_cast<std::size_t>(twice.events[0].name)).total_ns == 5000);
  CHECK(read_trace_text("made up", R"([{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 2}])").events.size() ==
        1);
}

TEST_CASE("reading: files that are not of one run are refused with both names and what differs") {
  TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_text(folder.file(name), text);
    return folder.file(name);
  };
  const auto of_backend = [&](const char* name, const char* backend, int rank) {
    return write(name, fmt::format(R"({{"distributedInfo": {{"backend": "{}", "rank": {}, "world_size": 2}},
        "traceEvents": [{{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1}}]}})",
                                   backend, rank));
  };
  const auto at = [&](const char* name, int rank, double begin, double duration) {
    return TraceWriting(rank, 2).kernel("gemm", begin, duration).write(folder.file(name));
  };
  std::string two = lesson_trace();
  two.replace(two.find("rank 1 (dp 1)"), 13, "rank 0");
  const struct {
    std::vector<std::string> paths, words;
  } refused[] = {
      {{of_backend("none", "", 0), of_backend("mpi", "mpi\\n", 1)},
       {"none\" and \"", "over nothing and the other over mpi\\n"}},
      {{of_backend("mpi 0", "mpi\\n", 0), of_backend("none 1", "", 1)}, {"over mpi\\n and the other over nothing"}},
      {{write("two", two)}, {"has two processes that are named rank 0"}},
      {{at("early", 0, 1, 1), at("late", 1, 2.001, 1)}, {"one ended before the other began"}},
      {{at("rank0", 0, 0, 10), at("again0", 0, 5, 10)}, {"are both of rank 0", "different ranks of one run"}},
      {{at("rank1", 1, 0, 10), folder.file("rank0"), folder.file("again0")},
       {"rank0\" and \"", "again0\" are both of rank 0"}},
      {{folder.file("rank0"), TraceWriting(1, 4).kernel("gemm", 5, 10).write(folder.file("of4"))},
       {"don't belong together", "2 and 4 ranks"}},
      {{folder.file("rank0"), at("outside", 2, 5, 10)}, {"rank 2 of 2 ranks"}},
      {{at("late first", 0, 5, 1), at("early second", 1, 3, 1.999)}, {"one ended before the other began"}},
      {{write("control", "[\x01\xc3\xa9\"")}, {"is not JSON at byte 2 ("}}};
  for (const auto& row : refused) {
    const std::string said = refusal_of([&] { read_traces(row.paths); });
    CAPTURE(said);
    for (const std::string& words : row.words) CHECK(said.find(words) != std::string::npos);
    CHECK(std::any_of(row.paths.begin(), row.paths.end(),
                      [&](const std::string& path) { return said.find(path) != std::string::npos; }));
  }
  CHECK(refusal_of([&] { read_traces({at("touching", 0, 1, 1), at("touched", 1, 2, 1)}); }) == "");
  // Of several reasons the one with the most events is said; of a pair with as many, the first.
  const std::string instant = R"("ph": "i", "name": "x", "ts": 1)", flow = R"("ph": "s", "name": "x", "ts": 1)";
  CHECK(refusal(TraceWriting().raw(instant).raw(flow).raw(instant).json())
            .find("3 events are left out, 2 of them because of: instants") != std::string::npos);
  CHECK(refusal(TraceWriting().raw(flow).raw(instant).json()).find("1 of them because of: flows") != std::string::npos);
}

TEST_CASE("reading: limits are those that are said, to the last one") {
  const auto named = [](std::size_t letters) { return TraceWriting().kernel(std::string(letters, 'a'), 0, 1).json(); };
  CHECK(refusal(named(1 << 20)) == "");
  CHECK(refusal(named((1 << 20) + 1)).find("a name of 1048577 bytes, and no more than 1048576") != std::string::npos);
  const auto nested = [](std::size_t deep) {
    std::string text = TraceWriting().kernel("gemm", 0, 1).json();
    return text.insert(1, "\"x\": " + std::string(deep, '[') + std::string(deep, ']') + ", ");
  };
  CHECK(refusal(nested(255)) == "");
  CHECK(refusal(nested(256)).find("nests its values more than 256 deep") != std::string::npos);
  // A time of four billion seconds, or a nanosecond more; three years of durations, or a nanosecond more.
  const auto events = [](const char* ts, const char* dur) {
    TraceWriting trace;
    trace.raw(fmt::format(R"("ph": "X", "cat": "kernel", "name": "long", "ts": {}, "dur": {})", ts, dur));
    return read_trace_text("made up", trace.kernel("gemm", 0, 0).json()).events.size();
  };
  CHECK(events("4000000000000000", "0") == 2);
  CHECK(events("-4000000000000000", "0") == 2);
  CHECK(events("4000000000000001", "0") == 1);
  CHECK(events("0", "100000000000000") == 2);
  CHECK(events("0", "100000000000000.001") == 1);
}

TEST_CASE("reading: of a folder, files that end as traces do are read in the order of their names, and no others") {
  TemporaryFolder folder;
  for (const char* name : {".json", "json", "d.json.old"}) write_text(folder.file(name), "");
  TraceWriting(1, 2).kernel("gemm", 0, 10).write(folder.file("a.json.gz"));
  for (const char* name : {"b.json", "c.txt"}) TraceWriting(0, 2).kernel("gemm", 0, 10).write(folder.file(name));
  const auto read_of = [](const std::string& path) {
    std::vector<std::string> paths;
    for (const TraceFile& file : read_traces({path})) paths.push_back(file.path);
    return paths;
  };
  CHECK(read_of(folder.path()) == std::vector<std::string>{folder.file("a.json.gz"), folder.file("b.json")});
  CHECK(read_of(folder.file("c.txt")) == std::vector<std::string>{folder.file("c.txt")});
}

TEST_CASE("reading: runs whose files differ: the first file speaks for all of them, and events of one kind add up") {
  const std::string first = R"({"muonwalk": {"name": "first", "backend": "memory",
      "parameters": [{"name": "a", "rows": 2, "cols": 3}]}, "traceEvents": [
      {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 1"}}, {"ph": "i"}, {"ph": "i"},
      {"ph": "X", "cat": "computation", "name": "optimizer", "pid": 1, "tid": 1, "ts": 0, "dur": 4},
      {"ph": "X", "cat": "phase", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 4}]})";
  const std::string second = R"({"muonwalk": {"name": "second", "backend": "gloo",
      "parameters": [{"name": "b", "rows": 4, "cols": 5}]}, "traceEvents": [
      {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 0"}}, {"ph": "i"},
      {"ph": "X", "cat": "computation", "name": "x", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]})";
  const Summary summary = summarize({read_trace_text("1", first), read_trace_text("2", second)});
  CHECK(summary.title == "first");
  CHECK(summary.backend == "memory");
  CHECK(summary.counted.left_out.at("instants: they have no duration") == 3);
  CHECK(summary.counted.left_out.at("metadata: names of processes and threads") == 2);
  CHECK(summary.counted.of(EventClass::computation) == 2);
  CHECK(summary.together.steps == 0);
  REQUIRE(summary.ranks.size() == 2);
  CHECK(summary.ranks[0].rank == 0);
  CHECK(summary.ranks[0].computation_ns == 5000);
  CHECK(summary.paths[0] == "1");
}

TEST_CASE("summary: where the times of one rank are not known, whichever it is, there is no sum of all") {
  for (const int without : {0, 1, 2}) {
    CAPTURE(without);
    std::vector<TraceFile> files;
    for (int rank = 0; rank < 3; ++rank) {
      TraceWriting trace(rank, 3);
      trace.event("cpu_op", "aten::mm", 0, 5);
      if (rank != without) trace.kernel("gemm", 0, 10);
      files.push_back(read_trace_text("made up", trace.json()));
    }
    const Summary summary = summarize(files);
    CHECK((summary.together.basis == TimeBasis::none));
    CHECK((summary.ranks[static_cast<std::size_t>((without + 1) % 3)].basis == TimeBasis::device));
  }
}

TEST_CASE("summary: the host's time is from its first range or operator to its last, whichever of them these are") {
  const auto host_time = [](double first, double last) {
    return summarize({read_trace_text("made up", TraceWriting()
                                                     .kernel("gemm", 0, 900)
                                                     .event("gpu_user_annotation", "Optimizer.step#A", 1, 800)
                                                     .event("cuda_runtime", "cudaLaunchKernel", 2, 700)
                                                     .event("user_annotation", "Optimizer.step#A", 50, 10)
                                                     .event("cpu_op", "aten::mm", first, 5)
                                                     .event("cpu_op", "aten::add", last, 7)
                                                     .json())})
        .together.optimizer_host;
  };
  CHECK(host_time(20, 300).of_ns == 287'000);
  CHECK(host_time(52, 53).of_ns == 10'000);
  CHECK(host_time(20, 300).time_ns == 10'000);
  CHECK(host_time(20, 300).share() == near(10.0 / 287));
}

TEST_CASE("summary: a call without a duration, or of nothing, has no bandwidth") {
  const auto line = [](double duration, long elements) {
    return summarize({read_trace_text(
                         "made up",
                         TraceWriting().collective("allreduce", 0, duration, elements, "Float", "[0, 1]", 2).json())})
        .together.collectives.at(0);
  };
  CHECK_FALSE(line(0, 8).algorithm_bandwidth().has_value());
  CHECK_FALSE(line(0, 8).bus_bandwidth().has_value());
  CHECK_FALSE(line(5, 0).algorithm_bandwidth().has_value());
  CHECK(line(5, 0).message_bytes == 0);
  CHECK(line(4, 8).algorithm_bandwidth().value() == near(0.008));
}

TEST_CASE("summary: groups of the same ranks with different names are different groups, in whatever order they talk") {
  std::vector<TraceFile> files;
  for (int rank = 0; rank < 2; ++rank) {
    TraceWriting trace(rank, 2);
    for (int call = 0; call < 2; ++call) {
      const bool first = call == rank;
      trace.event(
          "kernel", "ncclDevKernel_AllReduce", 100 * call, first ? 10 : 30,
          fmt::format(R"("Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Group size": 2,)"
                      R"( "Process Group Name": "{}", "Process Group Ranks": "[0, 1]")",
                      first ? "first" : "second"));
    }
    files.push_back(read_trace_text("made up", trace.json()));
  }
  const Summary summary = summarize(files);
  CHECK(summary.together.waiting.matched_calls == 4);
  CHECK(summary.together.waiting.waiting_ns == 0);
  CHECK(summary.together.waiting.transfer_ns == 80'000);
}
