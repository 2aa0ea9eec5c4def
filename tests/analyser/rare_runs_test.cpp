// Runs of which traces say little, or odd things: all that is said of them, word by word, is what is kept.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/analyser/comparison.hpp"
#include "sim/analyser/output.hpp"
#include "sim/analyser/pictures/picture.hpp"
#include "sim/analyser/reader.hpp"
#include "src/errors.hpp"
#include "tests/analyser/trace_writing.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// Over Gloo, on the CPU; one rank of two.
std::string on_the_host() {
  TraceWriting trace(0, 2);
  trace.event("user_annotation", "Optimizer.step#Muon.step", 0, 50).event("cpu_op", "aten::mm", 5, 20);
  trace.event("cpu_op", "gloo:all_reduce", 20, 15).event("user_annotation", "gloo:all_gather", 30, 12.5);
  // What PyTorch writes around a collective does not count as work.
  trace.event("cpu_op", "record_param_comms", 28, 30).event("cpu_op", "c10d::allreduce_", 27, 32);
  return trace.json();
}

// Kernels without a step; calls without a size, without ranks, and one rank more than there are.
std::string without_words(int rank, int calls) {
  TraceWriting trace(rank, 4);
  for (int i = 0; i < calls; ++i)
    trace.event("kernel", "ncclDevKernel_AllReduce", 10 * i, 4 + rank + i,
                fmt::format(R"("Collective name": "allreduce", "In msg nelems": {}, "dtype": "Float", "Group size": 2,)"
                            R"( "Process Group Name": "2", "Process Group Ranks": "[0, 1]")",
                            64 + (i == 1 ? rank : 0)));
  trace.event("kernel", "ncclDevKernel_Broadcast", 100, 4, R"("Collective name": "broadcast", "dtype": "Odd")");
  trace.event("kernel", "ncclX", 110, 4, R"("Collective name": "barrier", "Process Group Name": "2")");
  trace.event("kernel", "ncclDevKernel_SendRecv", 120, 3).event("cpu_op", "gloo:all_reduce", 1, 2);
  trace.event("gpu_user_annotation", "Optimizer.step#AdamW.step", 90, 30).event("gpu_memset", "Memset", 118, 1);
  trace.raw(R"("ph": "X", "cat": "kernel", "name": "", "ts": 1, "dur": 1)");
  trace.raw(R"("ph": "X", "cat": "kernel", "name": "a", "dur": 1)").raw(R"("ph": "X", "name": "a", "ts": 1)");
  trace.raw(R"("ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": "x")").raw(R"("ts": 4)");
  return trace.json();
}

// Of a lesson: posted messages, a failed check, a recording without room, a rank that has no name.
std::string of_a_lesson() {
  std::string events;
  const auto add = [&events](int rank, int thread, const char* category, const char* name, double begin, double lasts,
                             const std::string& args = "") {
    events += fmt::format(R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":"{}","ts":{},"dur":{},"args":{{{}}}}},)",
                          rank, thread, category, name, begin, lasts, args);
  };
  for (int rank = 0; rank < 2; ++rank) {
    events +=
        fmt::format(R"json({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"rank {0}"}}}},)json", rank);
    add(rank, 1, "step", "optimizer step 1", 0, 90);
    add(rank, 1, "step", "optimizer step 2", 100, 90 + rank);
    add(rank, 1, "computation", "work", 12, 48);
    add(rank, 2, "communication", "recv", 10, 1,
        R"("collective":"recv","group":"pp","group_size":2,"type":"bytes","bytes":0)");
    add(rank, 3, "transfer", "message from rank 1", 10, 70);
    add(rank, 2, "communication", "wait", 60, 20 + rank);
    add(rank, 2, "communication", "reduce_scatter over dp", 100, 30 - 5 * rank,
        R"("collective":"reduce_scatter","group":"dp","group_size":2,"group_ranks":"[0, 1]","type":"bfloat16",)"
        R"("bytes":48,"message_bytes":96)");
  }
  add(7, 1, "computation", "nobody's", 0, 5);
  events.pop_back();
  return R"({"traceEvents":[)" + events +
         R"(],"muonwalk":{"version":1,"name":"lesson_17_overlap","ranks":2,"backend":"memory","ok":false,)"
         R"("dropped_events":[0,1],"parameters":[{"name":"w0","rows":4,"cols":2},{"name":"none","rows":0,"cols":2}]}})";
}

// NCCL's own: a gather and a message, with channels of kernels or without.
std::string of_nccl(int rank, bool kernels) {
  const auto event = [rank](const char* category, const char* name, const char* phase, int id, double ts,
                            const std::string& more) {
    return fmt::format(
        R"({{"name":"{}","cat":"{}","ph":"{}","id":{},"pid":9,"tid":1,"ts":{},"args":{{"CommHash":77,"Rank":{}{}}}}},)",
        name, category, phase, id, ts, rank, more);
  };
  std::string text = "[" + event("COLL", "AllGather", "b", 1, 10, R"(,"Count":8,"Datatype":"ncclInt8")");
  for (int channel = 0; channel < 2 && kernels; ++channel) {
    text +=
        event("GPU", "KernelCh", "b", 0, 12 + channel,
              fmt::format(R"(,"StartGpuClk":{},"StopGpuClk":{})", 1000 + 10 * channel, 5000 + 100 * rank + channel));
    text += event("GPU", "KernelCh", "e", 0, 20 + channel, "");
  }
  text += event("COLL", "AllGather", "e", 1, 30, "");
  text += event("P2P", "Send", "b", 2, 40, fmt::format(R"(,"Count":16,"Datatype":"ncclFloat16","Peer":{})", 1 - rank));
  text += event("P2P", "Send", "e", 2, 55, "") + event("GROUP", "Group", "b", 3, 60, "");
  return text + event("COLL", "AllReduce", "b", 4, 70, R"(,"Count":1,"Datatype":"ncclFloat64")") + "{}]";
}

}  // namespace

TEST_CASE("rare runs: what is counted, what is left out and why, what is noted, and how they compare") {
  TemporaryFolder folder;
  const auto read = [&folder](const std::vector<std::string>& texts) {
    std::vector<std::string> paths;
    for (const std::string& text : texts) {
      paths.push_back(folder.file(fmt::format("{}.json", paths.size())));
      write_text(paths.back(), text);
    }
    return summarize(read_traces(paths));
  };
  // One ends as the other begins; the first one's optimizer has its range to itself.
  const std::string before = TraceWriting(0, 2)
                                 .kernel("gemm", 0, 10)
                                 .event("gpu_user_annotation", "Optimizer.step#Muon.step", 2, 5)
                                 .event("user_annotation", "Optimizer.step#Muon.step", 2, 3)
                                 .json(),
                    after = TraceWriting(1, 2).kernel("gemm", 10, 10).json();
  const std::vector<Summary> runs = {read({on_the_host()}),
                                     read({without_words(1, 3), without_words(0, 2)}),
                                     read({of_a_lesson()}),
                                     read({of_nccl(0, true), of_nccl(1, true)}),
                                     read({of_nccl(1, false)}),
                                     read({TraceWriting(0, 1).kernel("gemm", 0, 5).json()}),
                                     read({TraceWriting(4, 4).event("gpu_memcpy", "Memcpy", 0, 5).json()}),
                                     read({after, before}),
                                     read({before, after})};
  std::string text;
  const auto add = [&text](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += line + "\n";
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    add(summary_text(runs[i]));
    text += summary_csv(runs[i]);
    add(comparison_text(compare(runs[i], runs[(i + 1) % runs.size()])));
  }
  for (std::size_t at; (at = text.find(folder.path())) != std::string::npos;)
    text.replace(at, folder.path().size(), "");
  expect_golden("analyser_rare.txt", text);
}

TEST_CASE("rare runs: what is drawn of them, as a picture and as a page") {
  const auto run = [](const std::vector<std::string>& texts) {
    std::vector<TraceFile> files;
    for (const std::string& text : texts)
      files.push_back(read_trace_text(fmt::format("/some/folder/{}.json", files.size()), text));
    return picture_run(files, summarize(files));
  };
  const std::string none = TraceWriting(1, 2).event("cpu_op", "aten::mm", 0, 1).json();
  const std::vector<TracePicture> pictures = {{{run({on_the_host()})}, {}},
                                              {{run({without_words(0, 2), without_words(1, 3)})}, {}},
                                              {{run({of_a_lesson()}), run({of_nccl(0, true), of_nccl(1, false)})}, {}},
                                              {{run({on_the_host(), none}), run({none})}, {"One", "<Two>"}}};
  std::string drawn;
  for (const TracePicture& picture : pictures) {
    const std::string svg = trace_svg(picture), page = trace_page(picture);
    const auto part = [&page](const std::string& from, const std::string& to) {
      const std::size_t begin = page.find(from);
      REQUIRE(begin != std::string::npos);
      return page.substr(begin, page.find(to, begin) - begin);
    };
    drawn += svg.substr(0, svg.find("<style>")) + svg.substr(svg.find(drawn.empty() ? "<style>" : "</style>")) +
             part("<h1>", "<!-- ") + part("id=\"data\">", "</script>") + "\n";
  }
  expect_golden("analyser_rare_pictures.txt", drawn);
}

TEST_CASE("rare runs: limits are those that are said, to the last one") {
  const auto refusal = [](const std::string& text) {
    try {
      read_trace_text("made up", text);
    } catch (const muonwalk::UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto named = [](std::size_t letters) { return TraceWriting().kernel(std::string(letters, 'a'), 0, 1).json(); };
  CHECK(refusal(named(1 << 20)) == "");
  CHECK(refusal(named((1 << 20) + 1)) ==
        "\"made up\" holds a name of 1048577 bytes, and no more than 1048576 are kept of a name; name a file that "
        "torch.profiler or a lesson's --trace wrote");
  const auto nested = [](std::size_t deep) {
    std::string text = TraceWriting().kernel("gemm", 0, 1).json();
    text.insert(1, "\"x\": " + std::string(deep, '[') + std::string(deep, ']') + ", ");
    return text;
  };
  CHECK(refusal(nested(255)) == "");
  CHECK(refusal(nested(256)) ==
        "\"made up\" nests its values more than 256 deep, as no trace does; name a file that torch.profiler or a "
        "lesson's --trace wrote");
  // A time of four billion seconds, or a nanosecond more; three years of durations, or a nanosecond more.
  for (const auto& [ts, events] :
       {std::pair{"4000000000000000", 1}, {"-4000000000000000", 1}, {"4000000000000001", 0}}) {
    CAPTURE(ts);
    TraceWriting trace;
    trace.kernel("gemm", 0, 1)
        .raw(fmt::format(R"("ph": "X", "cat": "kernel", "name": "late", "ts": {}, "dur": 0)", ts));
    CHECK(read_trace_text("made up", trace.json()).events.size() == 1 + static_cast<std::size_t>(events));
  }
  for (const auto& [dur, events] : {std::pair{"100000000000000", 1}, {"100000000000000.001", 0}}) {
    TraceWriting trace;
    trace.raw(fmt::format(R"("ph": "X", "cat": "kernel", "name": "long", "ts": 0, "dur": {})", dur))
        .kernel("gemm", 0, 0);
    CHECK(read_trace_text("made up", trace.json()).events.size() == 1 + static_cast<std::size_t>(events));
  }
}

TEST_CASE("rare runs: of a folder, files that end as traces do are read in the order of their names, and no others") {
  TemporaryFolder folder;
  for (const char* name : {"b.json", "a.json.gz", "c.txt", ".json", "json", "d.json.old"})
    write_text(folder.file(name), "");
  const std::vector<std::string> paths = trace_paths(folder.path());
  REQUIRE(paths.size() == 2);
  CHECK(paths[0] == folder.file("a.json.gz"));
  CHECK(paths[1] == folder.file("b.json"));
  CHECK(trace_paths(folder.file("c.txt")).front() == folder.file("c.txt"));
}
