// Lessons that are traced, on processes and on fibers: the trace tells of every call and every message, costs no bit
// of the result, and is written whole or not at all.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "sim/classroom/lesson.hpp"
#include "sim/replay/run_trace.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/printed.hpp"
#include "tests/replay/perfetto_rules.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

struct Local {
  Matrix result = Matrix(1, 6);
};

// Processes come first: they are forked from this program, which may have no threads then.
const std::vector<std::pair<WorldKind, TransportKind>> kWorlds = {{WorldKind::processes, TransportKind::gloo},
                                                                  {WorldKind::fibers, TransportKind::gloo}};

Options options_for(const Grid& grid, std::pair<WorldKind, TransportKind> world = kWorlds[0]) {
  Options options;
  options.grid = grid;
  options.verbose = 0;
  std::tie(options.world, options.transport) = world;
  return options;
}

// A call of every kind over dp, and one over tp; what it does is in the result.
void talk(Rank& rank, Local& local) {
  Communicator& dp = rank.dp();
  const int n = dp.size();
  Flat mine(6, 0.1f * static_cast<float>(rank.rank() + 1));
  rank.phase("all together");
  dp.barrier();
  Flat sum = dp.all_reduce(mine);
  const Flat all = dp.all_gather(mine);
  rank.phase("optimizer: pieces");
  const Flat piece = dp.reduce_scatter(all);
  dp.broadcast(sum.data(), 6, n - 1);
  const std::vector<Index> twos(static_cast<std::size_t>(n), 2);
  Flat exchanged(static_cast<std::size_t>(2 * n));
  dp.all_to_all_v(all.data(), twos, exchanged.data(), twos);
  if (dp.rank() > 0) dp.recv(mine.data(), 6, dp.rank() - 1);
  if (dp.rank() + 1 < n) dp.send(mine.data(), 6, dp.rank() + 1);
  rank.phase("tp");
  const Flat from_tp = rank.tp().all_reduce(FlatOf<bfloat16>(4, bfloat16(0.5f))).size() == 4 ? sum : Flat();
  for (std::size_t i = 0; i < 6; ++i)
    local.result.data()[i] += mine[i] + sum[i] * from_tp[i] + piece[i] + exchanged[i % exchanged.size()];
}

// The formulas' word for what `talk` makes a rank send: [group, collective, type] → calls, bytes and messages.
using Sent = std::map<std::vector<std::string>, std::array<std::int64_t, 3>>;
Sent predicted(const Grid& grid, int rank, int times) {
  const Place place = grid.place(rank);
  const int n = grid.dp();
  const auto f32 = ElementType::float32;
  const std::vector<Index> twos(static_cast<std::size_t>(n), 2);
  Sent sent;
  const auto add = [&](const char* group, const char* collective, ElementType type, const Traffic& traffic) {
    sent[{group, collective, element_name(type)}] = {times, times * traffic.bytes_sent, times * traffic.messages_sent};
  };
  add("dp", "barrier", ElementType::bytes, barrier_traffic(n));
  add("dp", "all_reduce", f32, all_reduce_traffic(place.dp, n, 6, f32));
  add("dp", "all_gather", f32, all_gather_traffic(n, 6, f32));
  add("dp", "reduce_scatter", f32, reduce_scatter_traffic(n, 6, f32));
  add("dp", "broadcast", f32, broadcast_traffic(place.dp, n - 1, n, 6, f32));
  add("dp", "all_to_all", f32, all_to_all_v_traffic(place.dp, twos, twos, f32));
  if (place.dp > 0) add("dp", "recv", f32, recv_traffic(6, f32));
  if (place.dp + 1 < n) add("dp", "send", f32, send_traffic(6, f32));
  add("tp", "all_reduce", ElementType::bfloat16, all_reduce_traffic(place.tp, grid.tp(), 4, ElementType::bfloat16));
  return sent;
}

Sent traced(const ReadTrace& trace, int rank) {
  Sent sent;
  for (const TraceSlice& slice : trace.on(rank, "communication")) {
    auto& line = sent[{slice.args["group"], slice.args["collective"], slice.args["type"]}];
    line[0] += 1;
    line[1] += slice.args["bytes"].get<std::int64_t>();
    line[2] += slice.args["messages"].get<std::int64_t>();
  }
  return sent;
}

// Runs a lesson of some steps, and returns what the ranks hold in the end. A rank that is a process ends with the
// lesson.
std::vector<Matrix> run(const Options& options, int steps, bool right = true,
                        const std::function<void(Rank&, Local&)>& work = talk) {
  std::vector<Matrix> results;
  printed([&] {
    LessonInfo info;
    info.name = "lesson_77_traced";
    info.title = "Traced";
    Lesson<Local> lesson(info, options);
    lesson.step("prepare", [](Rank&, Local&) {});
    for (int step = 1; step <= steps; ++step) lesson.quiet_step("optimizer step " + std::to_string(step), work);
    for (const auto& of_rank : lesson.collect(&Local::result)) results.push_back(of_rank.at(0).matrix);
    if (!right) lesson.check("nothing", &Local::result, [](const RankInfo&) { return Matrix(1, 6); });
    const int code = lesson.answer("because");
    if (code != (right ? 0 : 1)) throw std::logic_error("the lesson ended with the wrong exit code");
  });
  return results;
}

ReadTrace read(const std::string& path) {
  ReadTrace trace = read_by_perfettos_rules(read_text(path));
  CAPTURE(path);
  CHECK(trace.broken == "");
  return trace;
}

}  // namespace

TEST_CASE("processes and fibers: slices and arrows are what the formulas predict, and the result has the same bits") {
  for (const auto& world : kWorlds)
    for (const Grid& grid : {Grid(), Grid().dp(2).tp(2), Grid().dp(5)}) {
      CAPTURE(static_cast<int>(world.first));
      CAPTURE(grid.text());
      const TemporaryFolder folder;
      Options options = options_for(grid, world);
      const std::vector<Matrix> plain = run(options, 3);
      options.trace_file = folder.file("all.json");
      const std::vector<Matrix> results = run(options, 3);
      REQUIRE(results.size() == plain.size());
      for (std::size_t rank = 0; rank < plain.size(); ++rank) CHECK(same_bits(results[rank], plain[rank]));

      const ReadTrace trace = read(options.trace_file);
      CHECK(static_cast<int>(trace.processes.size()) == grid.size());
      for (int rank = 0; rank < grid.size(); ++rank) {
        CAPTURE(rank);
        const Sent sent = traced(trace, rank);
        CHECK(sent == predicted(grid, rank, 3));
        std::int64_t messages = 0;
        for (const auto& [line, numbers] : sent) messages += numbers[2];
        CHECK((trace.arrows.count(rank) > 0 ? trace.arrows.at(rank) : 0) == messages);
        std::map<std::string, int> of_category;
        for (const TraceSlice& slice : trace.on(rank, "computation")) ++of_category[slice.category];
        CHECK(of_category["step"] == 3);
        CHECK(of_category["phase"] == 1 + 3 * 3);  // "prepare" is not a step of the optimizer
        CHECK(of_category["computation"] >= 3 * 3);
      }
    }
}

TEST_CASE("a small buffer keeps the first events; what does not fit is counted, and the trace stays sound") {
  const TemporaryFolder folder;
  const Grid grid = Grid().dp(2).tp(2);
  Options options = options_for(grid);
  options.trace_file = folder.file("all.json");
  run(options, 2);
  const auto entries = [&](const ReadTrace& trace, int rank) {  // steps, phases, calls; messages are counted as arrows
    std::size_t all = trace.on(rank, "communication").size();
    for (const TraceSlice& slice : trace.on(rank, "computation")) all += slice.category != "computation";
    return static_cast<int>(all);
  };
  const auto arrows = [](const ReadTrace& trace) {
    std::int64_t all = 0;
    for (const auto& [rank, count] : trace.arrows) all += count;
    return all;
  };
  const ReadTrace whole = read(options.trace_file);
  for (const auto& dropped : whole.whole["muonwalk"]["dropped_events"]) CHECK(dropped == 0);
  for (int room : {1, 2, 7, 23, 50}) {
    CAPTURE(room);
    options.trace_events = room;
    run(options, 2);
    const ReadTrace trace = read(options.trace_file);
    for (int rank = 0; rank < grid.size(); ++rank) {
      CHECK(trace.whole["muonwalk"]["dropped_events"][static_cast<std::size_t>(rank)] > 0);
      CHECK(entries(trace, rank) <= room);
      if (room < 50) CHECK(entries(trace, rank) < entries(whole, rank));
    }
    CHECK(arrows(trace) < arrows(whole));
  }
}

TEST_CASE(
    "of what had no room a trace knows the beginning, so that it claims no computation from there on, and all before") {
  for (const auto& world : {kWorlds[0], kWorlds[1]})
    for (const bool keeps_more : {false, true}) {  // a lesson that reads its own trace keeps more than it writes
      CAPTURE(keeps_more);
      constexpr std::size_t kRoom = 23;
      const TemporaryFolder folder;
      Options options = options_for(Grid().dp(2), world);
      options.trace_file = folder.file("some.json");
      options.trace_events = int{kRoom};
      options.set_up.traced = keeps_more;
      printed([&] {
        LessonInfo info;
        info.name = "lesson_78_no_room";
        Lesson<Local> lesson(info, options);
        for (int step = 1; step <= 3; ++step) lesson.quiet_step("optimizer step " + std::to_string(step), talk);
        std::vector<RankTrace> before;
        lesson.in_parent([&] { before = lesson.trace().ranks; });
        if (lesson.answer("because") != 0) throw std::logic_error("the lesson failed");
        for (std::size_t rank = 0; rank < 2; ++rank) {
          const RankTrace& kept = lesson.trace().ranks[rank];
          REQUIRE(kept.spans.size() == kRoom);
          CHECK(kept.dropped > 0);
          if (keeps_more) {
            REQUIRE(before[rank].spans.size() == kRoom + static_cast<std::size_t>(kept.dropped));
            CHECK(kept.full_since_ns == before[rank].spans[kRoom].begin_ns);
          } else {
            CHECK(kept.full_since_ns > 0);
            CHECK(kept.full_since_ns == before[rank].full_since_ns);
          }
          const std::vector<ComputationSlice> slices = computation_of(kept);
          REQUIRE(!slices.empty());
          CHECK(slices.back().end_ns <= kept.full_since_ns);
          const auto of_the_file = read(options.trace_file).on(static_cast<int>(rank), "computation");
          const auto computes = [](const TraceSlice& slice) { return slice.category == "computation"; };
          CHECK(std::count_if(of_the_file.begin(), of_the_file.end(), computes) ==
                static_cast<std::ptrdiff_t>(slices.size()));
        }
      });
    }
}

TEST_CASE("a trace that can't be written is refused before any rank starts") {
  const TemporaryFolder folder;
  write_text(folder.file("file"), "");
  const auto refusal = [&](const std::function<void(Options&)>& ask) {
    Options options = options_for(Grid().dp(2), kWorlds[1]);
    ask(options);
    std::string sentence;
    try {
      run(options, 1, true, [](Rank&, Local&) { throw std::logic_error("a rank has started"); });
    } catch (const UsageError& error) {
      sentence = error.what();
    }
    return sentence;
  };
  CHECK(refusal([&](Options& o) { o.trace_file = folder.file("none/all.json"); }).find("none/all.json") !=
        std::string::npos);
  CHECK(refusal([&](Options& o) { o.trace_file = folder.path(); }).find("it is a folder") != std::string::npos);
  CHECK(refusal([&](Options& o) { o.trace_file = o.record_file = folder.file("x"); }).find("--record") !=
        std::string::npos);
  CHECK(refusal([&](Options& o) { o.trace_file = folder.file("x"), o.trace_events = 0; }).find("--trace-events 0") !=
        std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("a run that fails leaves no trace; one whose check fails leaves all of it") {
  const TemporaryFolder folder;
  for (const auto& world : {kWorlds[0], kWorlds[1]}) {
    Options options = options_for(Grid().dp(2), world);
    options.trace_file = folder.file("all.json");
    const auto fail_later = [](Rank& rank, Local&) {
      rank.dp().barrier();
      if (rank.rank() == 1) throw std::runtime_error("on purpose");
    };
    CHECK_THROWS_AS(run(options, 1, true, fail_later), RunError);
    CHECK(folder.names().empty());
  }
  Options options = options_for(Grid().dp(2));
  options.trace_file = folder.file("all.json");
  run(options, 1, false);
  const ReadTrace trace = read(options.trace_file);
  CHECK(trace.whole["muonwalk"]["ok"] == false);
  CHECK(traced(trace, 1) == predicted(options.grid, 1, 1));
}
