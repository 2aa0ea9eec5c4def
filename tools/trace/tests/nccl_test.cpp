#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/summary.hpp"

// Traces in the format of NCCL's example profiler, as its sources write them. They are made up here, event by event: no
// run of ours on a GPU has been recorded.

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// A file of one rank of one communicator.
class NcclTrace {
 public:
  explicit NcclTrace(int rank, const std::string& communicator = "1493613951195738943")
      : rank_(rank), communicator_(communicator) {}

  // A collective or, with a peer, a message: from `begin`, its kernel in two channels for `gpu_ns`; none for 0.
  NcclTrace& call(const std::string& name, double begin, long count, const std::string& type, long gpu_ns,
                  int peer = -1) {
    const std::string category = peer < 0 ? "COLL" : "P2P";
    event(category + "_API", name, "b", id_, begin - 2, "\"count\": 1, \"Stream\": \"0x5020\"");
    const std::string who = peer < 0 ? "" : fmt::format("\"Peer\": {}, ", peer);
    event(category, name, "b", id_, begin,
          fmt::format("\"CommHash\": {}, \"Rank\": {}, {}\"Count\": {}, \"Datatype\": \"{}\", \"nChannels\": 2",
                      communicator_, rank_, who, count, type));
    for (int channel = 0; channel < 2 && gpu_ns > 0; ++channel) {
      // The second channel begins 10 ns later and ends last.
      const long start = 1756135989724672000 + static_cast<long>(begin * 1000) + 10 * channel;
      event("GPU", "KernelCh", "b", 0, begin + 5,
            fmt::format("\"Channel\": {}, \"StartGpuClk\": {}, \"StopGpuClk\": {}", channel, start,
                        start + gpu_ns - 10 * channel - (channel == 0 ? 20 : 0)));
      event("PROXY", "ProgressSend", "b", 7, begin + 6, "\"Channel\": 0, \"Peer\": 1, \"Steps\": 4");
      event("PROXY", "ProgressSend", "e", 7, begin + 7, "");
      event("GPU", "KernelCh", "e", 0, begin + 50, "");
    }
    event(category, name, "e", id_, begin + 60, "");
    event(category + "_API", name, "e", id_, begin + 61, "");
    ++id_;
    return *this;
  }
  NcclTrace& event(const std::string& category, const std::string& name, const std::string& phase, int id, double ts,
                   const std::string& args) {
    return raw(
        fmt::format("{{\"name\": \"{}\", \"cat\": \"{}\", \"ph\": \"{}\", \"id\": {}, \"pid\": 225798, \"tid\": 1, "
                    "\"ts\": {:f}{}}}",
                    name, category, phase, id, ts, args.empty() ? "" : ", \"args\": {" + args + "}"));
  }
  NcclTrace& raw(const std::string& text) {
    events_ += text + ",\n";
    return *this;
  }
  std::string text() const { return "[\n" + events_ + "{}]\n"; }
  // As NCCL names it.
  std::string write(const std::string& folder) const {
    const std::string path = fmt::format("{}/nccl_{}_{}.json", folder, communicator_, rank_);
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text().c_str(), file);
    std::fclose(file);
    return path;
  }

 private:
  int rank_;
  std::string communicator_;
  std::string events_;
  int id_ = 0;
};

const CollectiveLine* line_of(const RankSummary& rank, Collective collective) {
  for (const CollectiveLine& line : rank.collectives)
    if (line.collective == collective) return &line;
  return nullptr;
}

bool notes_say(const Summary& summary, const std::string& words) {
  for (const std::string& note : summary.notes)
    if (note.find(words) != std::string::npos) return true;
  return false;
}

template <class Read>
std::string refusal(const Read& read) {
  try {
    read();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("nccl: a call has its name, size and communicator, and of its kernel's channels the time on the GPU") {
  const TraceFile file = read_trace_text("made up", NcclTrace(3)
                                                        .call("AllReduce", 100, 262144, "ncclFloat32", 8159)
                                                        .call("Send", 300, 96, "ncclUint8", 500, 6)
                                                        .text());
  CHECK(file.dialect == TraceDialect::nccl);
  CHECK(file.communicator == "1493613951195738943");
  CHECK(file.backend == "nccl");
  CHECK(file.ranks_named == 7);
  REQUIRE(file.ranks.size() == 1);
  CHECK(file.ranks[0].rank == 3);
  REQUIRE(file.events.size() == 2);
  const TraceEvent& reduce = file.events[0];
  CHECK(file.name_of(reduce) == "AllReduce");
  CHECK(reduce.begin_ns == 105000);
  CHECK(reduce.duration_ns == 8159);
  REQUIRE(file.call_of(reduce) != nullptr);
  CHECK(file.call_of(reduce)->collective == Collective::all_reduce);
  CHECK(file.call_of(reduce)->message_bytes == 4 * 262144);
  CHECK(file.text_of(file.call_of(reduce)->type) == "float32");
  CHECK(file.call_of(file.events[1])->collective == Collective::send);
  CHECK(file.call_of(file.events[1])->message_bytes == 96);
  CHECK(file.events[1].duration_ns == 500);
  // All else is counted, with a reason.
  CHECK(file.left_out.at("GPU: channels of kernels, from which calls have their times") == 8);
  CHECK(file.left_out.at("PROXY: threads that serve the network") == 8);
  CHECK(file.left_out.at("COLL_API: what the host did to start a call") == 2);
  CHECK(file.left_out.at("P2P_API: what the host did to start a call") == 2);
  CHECK(file.left_out.at("empty: NCCL's list ends with one") == 1);
  CHECK(file.left_out.size() == 5);
}

TEST_CASE(
    "nccl: where the GPU's clock says nothing the host's does, and without kernels a note says whose time it is") {
  NcclTrace zero_clock(0);
  zero_clock.event("COLL", "Broadcast", "b", 4, 10,
                   "\"CommHash\": 5, \"Rank\": 0, \"Count\": 8, \"Datatype\": \"ncclInt8\"");
  for (const int channel : {0, 1}) {
    zero_clock.event("GPU", "KernelCh", "b", 0, 20 - channel, "\"Channel\": 0, \"StartGpuClk\": 0, \"StopGpuClk\": 0");
    zero_clock.event("GPU", "KernelCh", "e", 0, 31 - channel, "");
  }
  zero_clock.event("COLL", "Broadcast", "e", 4, 40, "");
  const TraceFile file = read_trace_text("made up", zero_clock.text());
  CHECK(file.events.at(0).begin_ns == 19000);
  CHECK(file.events.at(0).duration_ns == 12000);
  CHECK(file.notes.empty());

  const TraceFile host = read_trace_text("made up", NcclTrace(0).call("Broadcast", 10, 8, "ncclInt8", 0).text());
  CHECK(host.events.at(0).duration_ns == 60000);
  REQUIRE(host.notes.size() == 1);
  CHECK(host.notes[0].find("NCCL_PROFILE_EVENT_MASK=70") != std::string::npos);
}

TEST_CASE("nccl: an end that has the name of the call that is open, and another number, ends nothing") {
  NcclTrace trace(0);
  const std::string call = "\"CommHash\": 5, \"Rank\": 0, \"Count\": 8, \"Datatype\": \"ncclInt8\"";
  trace.event("COLL", "Broadcast", "b", 4, 10, call).event("COLL", "Broadcast", "e", 3, 20, "");
  trace.event("COLL", "Broadcast", "e", 4, 40, "");
  const TraceFile file = read_trace_text("made up", trace.text());
  REQUIRE(file.events.size() == 1);
  CHECK(file.events[0].duration_ns == 30000);
  CHECK(file.left_out.at("damaged: the end of a call that did not begin") == 1);
}

TEST_CASE("nccl: what lesson 22 plans is what its trace would say, call by call and byte by byte") {
  const TemporaryFolder folder;
  constexpr int kRanks = 3, kSteps = 2;
  const Grid grid = Grid().dp(kRanks);
  const Layout layout = plan_layout(small_parameters(), grid);
  std::vector<Plan> plans;
  for (int rank = 0; rank < kRanks; ++rank) plans.push_back(muon_plan(layout, grid.place(rank), MuonSettings()));
  // The calls of the backend over NCCL: equal shards are one ncclAllGather of bytes, pieces are messages in a group.
  for (int rank = 0; rank < kRanks; ++rank) {
    NcclTrace trace(rank);
    double at = 1000.0 * rank;  // no common clock
    for (int step = 0; step < kSteps; ++step)
      for (const Operation& operation : plans[static_cast<std::size_t>(rank)].operations) {
        const Call* call = std::get_if<Call>(&operation);
        if (call == nullptr) continue;
        if (call->kind == CollectiveKind::all_gather)
          trace.call("AllGather", at += 100, 4 * call->elements_in, "ncclInt8", 4000);
        for (int peer = 0; peer < kRanks && call->kind == CollectiveKind::reduce_scatter; ++peer) {
          if (peer == rank) continue;
          trace.call("Send", at += 100, 4 * layout.dp_counts(0, 0)[static_cast<std::size_t>(peer)], "ncclUint8", 900,
                     peer);
          trace.call("Recv", at += 100, 4 * call->elements_out, "ncclUint8", 900, peer);
        }
      }
    trace.write(folder.path());
  }

  const Summary summary = summarize(read_traces(trace_paths(folder.path())));
  REQUIRE(summary.ranks.size() == kRanks);
  CHECK(summary.world_size == kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Ledger ledger = ledger_of(plans[static_cast<std::size_t>(rank)]);
    const RankSummary& found = summary.ranks[static_cast<std::size_t>(rank)];
    std::int64_t gathers = 0, gathered = 0, scattered = 0, pieces = 0;
    for (const LedgerLine& line : ledger.lines()) {
      (line.kind == CollectiveKind::all_gather ? gathers : pieces) += line.calls;
      (line.kind == CollectiveKind::all_gather ? gathered : scattered) += line.traffic.bytes_sent;
    }
    const CollectiveLine* gather = line_of(found, Collective::all_gather);
    REQUIRE(gather != nullptr);
    CHECK(gather->calls == kSteps * gathers);
    CHECK(gather->group_size == kRanks);
    // The whole, of which a rank sends its part to all others.
    CHECK(gather->message_bytes == kSteps * gathered * kRanks / (kRanks - 1));
    CHECK(gather->time_ns == 4000 * kSteps * gathers);
    const CollectiveLine* send = line_of(found, Collective::send);
    REQUIRE(send != nullptr);
    CHECK(send->calls == kSteps * pieces * (kRanks - 1));
    CHECK(send->message_bytes == kSteps * scattered);
    CHECK(found.waiting.matched_calls == kSteps * gathers);
    CHECK(found.waiting.unmatched_calls == kSteps * pieces * 2 * (kRanks - 1));  // messages have but two ends
  }
  CHECK(notes_say(summary, "counts time from its own start"));

  // Without one of the ranks nobody knows how many there were.
  std::vector<std::string> paths = trace_paths(folder.path());
  paths.pop_back();
  const Summary two = summarize(read_traces(paths));
  CHECK(notes_say(two, "at least 3 ranks, and files of 2"));
  CHECK(line_of(two.ranks[0], Collective::all_gather)->group_size == 0);
  CHECK(!line_of(two.ranks[0], Collective::all_gather)->message_bytes);
  CHECK(line_of(two.ranks[0], Collective::send)->message_bytes);

  const Outcome shown = run_program({MUONWALK_TRACE_PROGRAM, "summary", folder.path()}, 60);
  CAPTURE(shown.err);
  CHECK(shown.exit_code == 0);
  CHECK(shown.out.find("nccl") != std::string::npos);
  CHECK(shown.out.find("all_gather") != std::string::npos);
}

TEST_CASE("nccl: files that don't belong together, and what is damaged, have their sentence or their line") {
  const TemporaryFolder folder;
  const std::string one = NcclTrace(0, "11").call("AllGather", 1, 8, "ncclInt8", 9).write(folder.path());
  const std::string other = NcclTrace(1, "12").call("AllGather", 1, 8, "ncclInt8", 9).write(folder.path());
  CHECK(refusal([&] {
          read_traces({one, other});
        }).find("one is of communicator 11 and the other of 12") != std::string::npos);
  // The second call is of another communicator, or of another rank of the same one.
  for (const std::string second : {"\"CommHash\": 12, \"Rank\": 0", "\"CommHash\": 11, \"Rank\": 1"}) {
    NcclTrace trace(0, "11");
    trace.call("AllGather", 1, 8, "ncclInt8", 9);
    trace.event("COLL", "AllGather", "b", 9, 90, second + ", \"Count\": 8, \"Datatype\": \"ncclInt8\"");
    trace.event("COLL", "AllGather", "e", 9, 99, "");
    CHECK(
        refusal([&] { read_trace_text("made up", trace.text()); }) ==
        "\"made up\" is of two communicators, or of two ranks of one; NCCL's profiler writes a file for each, so name "
        "them as they were written");
  }

  NcclTrace damaged(0);
  damaged.call("AllGather", 1, 8, "ncclInt8", 9);
  damaged.event("COLL", "AllGather", "e", 77, 200, "");                                                // did not begin
  damaged.event("COLL", "AllGather", "b", 78, 210, "\"CommHash\": 1493613951195738943, \"Rank\": 0");  // does not end
  damaged.event("COLL", "AllReduce", "b", 79, 220, "\"CommHash\": 1493613951195738943, \"Rank\": 0");
  damaged.event("COLL", "AllReduce", "e", 79, 215, "");  // ends before
  const TraceFile file = read_trace_text("made up", damaged.text());
  CHECK(file.events.size() == 1);
  CHECK(file.left_out.at("damaged: the end of a call that did not begin") == 1);
  CHECK(file.left_out.at("damaged: a call that begins and does not end") == 1);
  CHECK(file.left_out.at("damaged: a negative duration") == 1);
  CHECK(refusal([] {
          read_trace_text("made up", NcclTrace(0).event("GROUP_API", "Group", "b", 1, 1, "").text());
        }).find("holds no kernel") != std::string::npos);
}

TEST_CASE("nccl: pairs of events in other traces stay what they were") {
  const TraceFile file = read_trace_text(
      "made up",
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2, "pid": 0, "tid": 7},
      {"ph": "b", "cat": "COLL", "name": "AllGather", "id": 1, "ts": 1, "args": {"CommHash": 1, "Rank": 0}},
      {"ph": "e", "cat": "COLL", "name": "AllGather", "id": 1, "ts": 2}]})");
  CHECK(file.dialect == TraceDialect::pytorch);
  CHECK(file.events.size() == 1);
  CHECK(file.left_out.at("other phases than X, M, s, t, f, C, i, B and E") == 2);
}
