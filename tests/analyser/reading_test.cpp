// All that is kept of a trace, field by field: what is written here stands beside what was read, in a file that is
// kept.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/analyser/comparison.hpp"
#include "sim/analyser/pictures/timeline.hpp"
#include "sim/analyser/reader.hpp"
#include "sim/analyser/summary.hpp"
#include "src/errors.hpp"
#include "tests/analyser/trace_writing.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// A trace of torch.profiler in which no two things are alike: threads and streams with one number, ties, arguments of
// every kind, and what is not an event.
const char* const kPytorch = R"json({
"distributedInfo": {"backend": "nccl", "rank": "3", "world_size": "8", "pg_count": 2},
"recorded_by": {"dropped_events": 2, "by": [7]},
"deviceProperties": [{"id": 0, "name": "none", "args": {"name": "nobody"}}],
"traceEvents": [
{"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "python"}},
{"ph": "M", "name": "thread_name", "pid": 5, "tid": 11, "args": {"name": "first"}},
{"ph": "M", "name": "thread_name", "pid": 5, "tid": 11, "args": {"name": "pt_main_thread"}},
{"ph": "M", "name": "thread_name", "pid": 6, "tid": 11, "args": {"name": "of another process"}},
{"ph": "M", "name": "process_labels", "pid": 0, "args": {"name": "GPU 0"}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 11, "ts": 10.125, "dur": 3, "args": {"type": "x"}},
{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 5, "tid": 12, "ts": 20, "dur": 6.5,
 "args": {"Collective name": "allreduce", "In msg nelems": 96, "Out msg nelems": 96, "dtype": "Float", "Group size": 2}},
{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 5, "tid": 11, "ts": 21, "dur": 5,
 "args": {"Collective name": "allreduce", "In msg nelems": 12, "dtype": "Long", "Group size": 3,
 "Process Group Name": 4, "Process Group Description": "default", "Process Group Ranks": "[1, 3, 5]"}},
{"ph": "X", "cat": "user_annotation", "name": "gloo:barrier", "pid": 6, "tid": 11, "ts": 29, "dur": 1},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 5, "tid": 11, "ts": 1, "dur": 90},
{"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#4", "pid": 0, "tid": 7, "ts": 40, "dur": 50},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 40, "dur": 12.0006, "args": {"stream": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 20, "ts": 40, "dur": 12.0006, "args": {"stream": 20}},
{"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 20, "ts": 40, "dur": 12.0004},
{"ph": "X", "cat": "kernel", "name": "host stream", "pid": 5, "tid": 11, "ts": 61, "dur": 0},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 55, "dur": 1,
 "args": {"bytes": 4096, "stream": 7}},
{"ph": "X", "cat": "gpu_memset", "name": "Memset", "pid": "1.5", "tid": 1.5, "ts": -2, "dur": 1e0},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "pid": 0, "tid": 24, "ts": 60,
 "dur": 9, "args": {"Collective name": "_reduce_scatter_base", "In msg nelems": 640, "Out msg nelems": 80,
 "dtype": "BFloat16", "Group size": "8", "Process Group Name": "dp", "Process Group Ranks": "[0, 1, 2, ...]",
 "In split size": "[]", "nested": {"dtype": "Float", "Group size": 99}}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather", "pid": 0, "tid": 24, "ts": 70, "dur": 2,
 "args": {"Collective name": "all_gather", "In msg nelems": 9, "dtype": "Quaternion", "Process Group Name": "only"}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Broadcast", "pid": 0, "tid": 24, "ts": 73, "dur": 2,
 "args": {"dtype": "Double", "Out msg nelems": 5, "Group size": -4, "Process Group Ranks": "[3]"}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 0, "tid": 24, "ts": 76, "dur": 2,
 "args": {"Process Group Name": "alone", "dtype": "Half", "In msg nelems": 5}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 24, "ts": 79, "dur": 2,
 "args": {"Collective name": "reduce", "In msg nelems": 2305843009213693951, "dtype": "Float", "Group size": 9999999999}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 24, "ts": 82, "dur": 2,
 "args": {"Collective name": "reduce", "In msg nelems": 1152921504606846975, "dtype": "Double"}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 24, "ts": 85, "dur": 2,
 "args": {"Collective name": "reduce", "In msg nelems": 18446744073709551615, "Out msg nelems": 0, "dtype": "Byte"}},
{"ph": "X", "cat": "python_function", "name": "train.py(7): gemm", "pid": 5, "tid": 11, "ts": 2, "dur": 80},
{"ph": "X", "cat": "python_function", "name": "gemm", "pid": 5, "tid": 11, "ts": 3, "dur": 70},
{"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 4, "dur": 1},
{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "x", "ts": 0, "dur": 95},
{"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 5, "tid": 11, "ts": 5, "dur": 1},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 11, "ts": 6, "dur": 1},
{"ph": "X", "cat": "step", "name": "a lesson's", "pid": 5, "tid": 11, "ts": 7, "dur": 1},
{"ph": "X", "cat": "mtia_ccp_events", "name": "odd", "pid": 5, "tid": 11, "ts": 8, "dur": 1},
{"ph": "X", "name": "without", "pid": 5, "tid": 11, "ts": 9, "dur": 1},
{"ph": "X", "cat": "kernel", "name": "after", "pid": 18446744073709551615, "tid": 1, "ts": 4e1, "dur": 2.5e-3},
{"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
{"ph": "X", "cat": "kernel", "name": "text times", "ts": "1", "dur": 1},
{"ph": "i", "name": "instant", "ts": 1}, {"ph": "C", "name": "memory", "ts": 1}, {"ph": "s", "name": "ac2g", "ts": 1},
17, "text", null, [1, [2]], {"ph": "Q"}, {}
]})json";

// A lesson's trace with odd ranks, threads and matrices.
const char* const kLesson = R"json({"muonwalk": {"ok": true, "ranks": 3, "name": "lesson_12_odd", "backend": "memory",
"dropped_events": [-5, "3", 4, null], "deeper": {"name": "no title", "ok": false},
"parameters": [{"name": "w0", "rows": 4, "cols": 2}, {"name": "no columns", "rows": 3}, {"rows": 5, "cols": 6},
               {"name": "text", "rows": "7", "cols": "8"}, {"name": "flat", "rows": 0, "cols": 8}, 9]},
"distributedInfo": {"rank": 1, "world_size": 2},
"traceEvents": [
{"ph": "X", "cat": "computation", "name": "before its rank is named", "pid": 77, "tid": 1, "ts": 0, "dur": 1},
{"ph": "M", "name": "process_name", "pid": 77, "args": {"name": "rank 12 (dp 3, tp 0)"}},
{"ph": "M", "name": "process_name", "pid": 78, "args": {"name": "rank 9"}},
{"ph": "M", "name": "process_name", "pid": 79, "args": {"name": "rank x"}},
{"ph": "M", "name": "process_name", "pid": 80, "args": {"name": "rank 10"}},
{"ph": "M", "name": "thread_name", "pid": 77, "tid": 2, "args": {"name": "communication"}},
{"ph": "X", "cat": "step", "name": "step 1", "pid": 77, "tid": 1, "ts": 0, "dur": 50},
{"ph": "X", "cat": "phase", "name": "optimizer: gather", "pid": 77, "tid": 1, "ts": 0, "dur": 30},
{"ph": "X", "cat": "communication", "name": "all_gather over dp", "pid": 77, "tid": 2, "ts": 3, "dur": 4,
 "args": {"collective": "all_gather", "group": "dp", "group_size": 4, "group_ranks": "[0, 4]", "type": "bfloat16",
 "elements": 6, "bytes": 12, "message_bytes": 48, "algbw": 1.5}},
{"ph": "X", "cat": "communication", "name": "send", "pid": 78, "tid": 2, "ts": 3, "dur": 5,
 "args": {"collective": "send", "group": "pp", "group_size": 2, "type": "bytes", "bytes": 0, "message_bytes": 0}},
{"ph": "X", "cat": "communication", "name": "wait", "pid": 78, "tid": 2, "ts": 9, "dur": 5},
{"ph": "X", "cat": "transfer", "name": "message from rank 12", "pid": 78, "tid": 3, "ts": 3, "dur": 11},
{"ph": "X", "cat": "kernel", "name": "of a device", "pid": 78, "tid": 1, "ts": 1, "dur": 1},
{"ph": "X", "cat": "message", "name": "unknown", "pid": 78, "tid": 1, "ts": 1, "dur": 1},
{"ph": "X", "cat": "computation", "name": "of nobody", "pid": 79, "tid": 1, "ts": 1, "dur": 1}
]})json";

// NCCL's own: all categories, two calls with channels, one without, and pairs that are not whole.
std::string nccl_file(const std::string& communicator, int rank, bool scatter) {
  std::string text = "[";
  const auto add = [&](const char* category, const char* name, const char* phase, int id, const char* ts,
                       const std::string& args) {
    text += fmt::format(R"({{"name":"{}","cat":"{}","ph":"{}","id":{},"pid":9,"tid":1,"ts":{},"args":{{{}}}}},)", name,
                        category, phase, id, ts, args);
  };
  const auto who = [&](const std::string& more) {
    return fmt::format(R"("CommHash":{},"Rank":{}{})", communicator, rank, more);
  };
  for (const char* category : {"KERNEL_LAUNCH", "GROUP_API", "COLL_API", "P2P_API", "GROUP", "PROXY", "NET", "NET_IB"})
    add(category, "begin", "b", 1, "1", "");
  add("GPU", "KernelCh", "b", 0, "2", R"("StartGpuClk":1,"StopGpuClk":9)");  // of no call
  add("COLL", "AllGather", "b", 5, "10", who(R"(,"Count":24,"Datatype":"ncclInt8")"));
  add("GPU", "KernelCh", "b", 0, "12", R"("StartGpuClk":2000,"StopGpuClk":9500)");
  add("GPU", "KernelCh", "b", 0, "11", R"("StartGpuClk":1400,"StopGpuClk":9100)");
  add("GPU", "KernelCh", "b", 0, "\"no time\"", R"("StartGpuClk":7,"StopGpuClk":99999)");
  add("GPU", "KernelCh", "e", 0, "33", "");
  add("GPU", "KernelCh", "e", 0, "31", "");
  add("COLL", "AllReduce", "e", 5, "34", "");  // of another name
  add("COLL", "AllGather", "e", 5, "40", "");
  add("COLL", "ReduceScatter", "b", 6, "50", who(R"(,"Count":3,"Datatype":"ncclBfloat16")"));
  add("GPU", "KernelCh", "b", 0, "52", R"("StartGpuClk":30,"StopGpuClk":20)");  // by a clock that went back
  add("GPU", "KernelCh", "b", 0, "53", R"("StartGpuClk":30,"StopGpuClk":80)");
  add("GPU", "KernelCh", "e", 0, "58", "");
  add("COLL", "ReduceScatter", "e", 6, "60", "");
  add("P2P", "Recv", "b", 7, "70", who(R"(,"Count":16,"Datatype":"ncclFloat64","Peer":4)"));
  add("P2P", "Recv", "e", 7, "77.5", "");
  add("COLL", "", "b", 8, "80", who(""));
  add("COLL", "AllReduce", "b", 9, "\"x\"", who(""));
  add("COLL", "AllReduce", "e", 9, "81", "");
  for (const char* count : {"-7", "4611686018427387904", "1152921504606846976"}) {
    add("COLL", scatter ? "AllGather" : "AllReduce", "b", 10, "90",
        who(fmt::format(R"(,"Count":{},"Datatype":"ncclUint8")", count)));
    add("COLL", scatter ? "AllGather" : "AllReduce", "e", 10, "91", "");
  }
  add("COLL", "Broadcast", "b", 11, "92", who(R"(,"Count":2,"Datatype":"Float")"));
  add("COLL", "Broadcast", "e", 11, "94", "");
  add("COLL", "AllReduce", "b", 12, "95", who(R"(,"Count":5000000000000000000,"Datatype":"ncclFloat32")"));
  add("COLL", "AllReduce", "e", 12, "96", "");
  add("COLL", "Broadcast", "b", 13, "97", "");  // does not end
  return text + "{}]";
}

std::string dumped(const TraceFile& file) {
  std::string text = fmt::format("file {}: {}, backend '{}', title '{}', communicator '{}', {} named, {} bytes\n",
                                 file.path, dialect_name(file.dialect), file.backend, file.title, file.communicator,
                                 file.ranks_named, file.bytes);
  for (const TraceRank& rank : file.ranks)
    text += fmt::format("rank {}{} '{}' of {}\n", rank.rank, rank.stated ? "" : ", not stated,", rank.label,
                        rank.world_size);
  for (const TraceTrack& track : file.tracks)
    text += fmt::format("track of {}: '{}'{}\n", track.rank, track.name, track.device ? ", device" : "");
  for (const TracedMatrix& matrix : file.matrices)
    text += fmt::format("matrix '{}' {} × {}\n", matrix.name, matrix.rows, matrix.cols);
  for (const TraceEvent& event : file.events) {
    text += fmt::format("{} + {} ns, {} '{}' on track {}", event.begin_ns, event.duration_ns,
                        event_class_name(event.event_class), file.name_of(event), event.track);
    if (const CollectiveCall* call = file.call_of(event))
      text += fmt::format(": {} of {} '{}' in '{}' called '{}', message {}, sent {}", collective_text(call->collective),
                          call->group_size, file.text_of(call->type), file.text_of(call->group),
                          file.text_of(call->group_name), call->message_bytes, call->sent_bytes);
    text += "\n";
  }
  text += fmt::format("{} calls\n", file.calls.size());
  REQUIRE(file.tallies.size() == file.names.size());
  for (std::size_t name = 0; name < file.names.size(); ++name)
    if (file.tallies[name].events > 0)
      text += fmt::format("tally '{}': {} events, {} ns\n", file.names[name], file.tallies[name].events,
                          file.tallies[name].total_ns);
  for (const auto& [why, events] : file.left_out) text += fmt::format("left out {}: {}\n", events, why);
  for (const std::string& note : file.notes) text += "note: " + note + "\n";
  return text + "\n";
}

std::string dumped(const Timeline& timeline) {
  std::string text =
      fmt::format("timeline from {} ns, {} ns, {} events\n", timeline.begin_ns, timeline.span_ns, timeline.events);
  const auto name = [&](std::int32_t of) { return of < 0 ? "–" : timeline.texts[static_cast<std::size_t>(of)]; };
  for (const TimelineRank& rank : timeline.ranks) {
    text += fmt::format("rank {} '{}'\n", rank.rank, rank.label);
    for (const TimelineLane& lane : rank.lanes)
      for (const TimelineRow& row : lane.rows) {
        text += fmt::format("  {}\n", lane_kind_text(lane.kind));
        for (const TimelineSlice& slice : row)
          text += fmt::format("    {} + {} ns, {} busy, {} events '{}' {} {}, message {}, sent {}\n", slice.begin_ns,
                              slice.duration_ns, slice.busy_ns, slice.events, name(slice.name), name(slice.type),
                              name(slice.group), slice.message_bytes, slice.sent_bytes);
      }
  }
  for (const auto& [which, events] : timeline.not_drawn) text += fmt::format("not drawn: {} {}\n", events, which);
  return text + "\n";
}

std::string refusal_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const muonwalk::UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("reading: of a trace in each dialect, every field that is kept of it, and where it is drawn") {
  const std::string big = "18446744073709551557";  // as large as NCCL's numbers of communicators are
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"pytorch", kPytorch},
      {"lesson", kLesson},
      {"nccl", nccl_file(big, 2, false)},
      {"scatter", nccl_file("17", 0, true)},
      {"array", R"([{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2}])"},
      {"twice", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 2}],
                    "distributedInfo": {"rank": 3000000000, "world_size": 4000000000},
                    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "b", "ts": 5, "dur": 2}]})"},
      {"negative", R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 2}],
                       "distributedInfo": {"rank": -3, "world_size": -4, "backend": "gloo"}})"},
      {"last rank", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 2}],
                        "distributedInfo": {"rank": 3, "world_size": 4}})"},
      {"no rank", R"([{"name": "Send", "cat": "P2P", "ph": "b", "id": 1, "ts": 1, "args": {"Count": 3}},
                      {"name": "Send", "cat": "P2P", "ph": "e", "id": 1, "ts": 3}, {}])"}};
  std::string text;
  for (const auto& [name, json] : texts) {
    const TraceFile file = read_trace_text(name, json);
    text += dumped(file) + dumped(make_timeline({file}));
  }
  expect_golden("analyser_files.txt", text);
}

TEST_CASE("reading: the files of all ranks of a communicator, or of some: what is known of its calls then") {
  TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_text(folder.file(name), text);
    return folder.file(name);
  };
  std::vector<std::string> all;
  for (int rank = 0; rank < 5; ++rank) all.push_back(write(fmt::format("{}", rank), nccl_file("17", rank, true)));
  std::string text;
  for (const std::vector<std::string>& paths :
       {all, {all[0], all[3]}, {write("alone", R"([{"name": "AllGather", "cat": "COLL", "ph": "b", "id": 1, "ts": 1,
          "args": {"CommHash": 4, "Rank": 0, "Count": 3, "Datatype": "ncclInt8"}},
          {"name": "AllGather", "cat": "COLL", "ph": "e", "id": 1, "ts": 3}, {}])")}}) {
    const std::vector<TraceFile> files = read_traces(paths);
    for (const TraceFile& file : files) text += dumped(file);
    text += dumped(make_timeline(files));
  }
  for (std::size_t at; (at = text.find(folder.path())) != std::string::npos;)
    text.replace(at, folder.path().size(), "");
  expect_golden("analyser_communicators.txt", text);
}

TEST_CASE("reading: files that are not of one run, and files with nothing to count, are refused in these words") {
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
  const std::string none = of_backend("none", "", 0), mpi = of_backend("mpi", "mpi\\n", 1),
                    none_1 = of_backend("none 1", "", 1), mpi_0 = of_backend("mpi 0", "mpi\\n", 0);
  const std::string first = write("first", nccl_file("17", 0, true)), again = write("again", nccl_file("17", 0, true)),
                    other = write("other", nccl_file("18446744073709551557", 1, true)),
                    close = write("close", nccl_file("18446744073709551558", 2, true));
  std::string two = kLesson, later = TraceWriting(1, 2).kernel("gemm", 2.001, 1).json();
  two.replace(two.find("rank 10"), 7, "rank 9 ");
  std::string said;
  for (const std::vector<std::string>& paths :
       std::vector<std::vector<std::string>>{{none, mpi},
                                             {mpi_0, none_1},
                                             {first, again},
                                             {first, other},
                                             {other, close},
                                             {write("two", two)},
                                             {mpi_0, write("later", later)},
                                             {write("first later", TraceWriting(1, 2).kernel("gemm", 5, 1).json()),
                                              write("before", TraceWriting(0, 2).kernel("gemm", 3, 1.999).json())},
                                             {write("control", "[\x01\xc3\xa9\"")}})
    said += refusal_of([&] { read_traces(paths); }) + "\n";
  // Of several reasons the one with the most events is said; of a pair with as many, the first.
  const std::string instant = R"("ph": "i", "name": "x", "ts": 1)", flow = R"("ph": "s", "name": "x", "ts": 1)";
  const std::string runtime = R"("ph": "X", "cat": "cuda_runtime", "name": "x", "ts": 1, "dur": 1)";
  for (const TraceWriting& trace :
       {TraceWriting().raw(instant).raw(flow).raw(instant).raw(runtime), TraceWriting().raw(flow).raw(instant)})
    said += refusal_of([&] { read_trace_text("made up", trace.json()); }) + "\n";
  for (std::size_t at; (at = said.find(folder.path())) != std::string::npos;)
    said.replace(at, folder.path().size(), "");
  expect_golden("analyser_refusals.txt", said);
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
  REQUIRE(summary.matrices.size() == 1);
  CHECK(summary.matrices[0].name == "a");
  CHECK(summary.counted.left_out.at("instants: they have no duration") == 3);
  CHECK(summary.counted.left_out.at("metadata: names of processes and threads") == 2);
  CHECK(summary.counted.of(EventClass::computation) == 2);
  CHECK(summary.together.steps == 0);
  REQUIRE(summary.ranks.size() == 2);
  CHECK(summary.ranks[0].rank == 0);
  CHECK(summary.ranks[0].computation_ns == 5000);
  CHECK(summary.paths[0] == "1");
}

TEST_CASE("summary: where the times of one rank are not known, whichever it is, there is no sum of all, and no mean") {
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
    for (const Figure& figure : figures_of(summary.together, summary.ranks.size()))
      if (figure.name == "computation" || figure.name == "span") CHECK_FALSE(figure.value.has_value());
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
  CHECK(host_time(20, 300).share() == doctest::Approx(10.0 / 287));
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
  CHECK(line(4, 8).algorithm_bandwidth().value() == doctest::Approx(0.008));
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

TEST_CASE("nccl: a rank or a peer that is higher than any can be names no more ranks than there can be") {
  const auto named = [](const std::string& who) {
    return read_trace_text("made up", R"([{"name": "Send", "cat": "P2P", "ph": "b", "id": 1, "ts": 1, "args": {)" +
                                          who +
                                          R"(}}, {"name": "Send", "cat": "P2P", "ph": "e", "id": 1, "ts": 3}, {}])")
        .ranks_named;
  };
  CHECK(named(R"("Rank": 3, "Peer": 1)") == 4);
  CHECK(named(R"("Rank": 1, "Peer": 3)") == 4);
  CHECK(named(R"("Rank": 2147483647)") == (1 << 20) + 1);
  CHECK(named(R"("Rank": 0, "Peer": 9000000000)") == (1 << 20) + 1);
  CHECK(named(R"("Rank": -7)") == 0);
}
