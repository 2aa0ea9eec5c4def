// Runs a lesson with --trace and --trace-per-rank and holds the traces to what they promise. ctest calls it once per
// lesson:
//
//     check_trace PROGRAM [ARGUMENT...]
//
// The arguments are handed to the lesson, so that one that works long can be checked in a smaller size.

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <iostream>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tests/replay/perfetto_rules.hpp"

using namespace muonwalk::testing;
using Json = nlohmann::json;

namespace {

constexpr double kLimitSeconds = 240;  // far more than any lesson needs, also under a sanitizer

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "FAILED  " << what << "\n";
  ++failures;
}

struct Lesson {
  std::vector<std::string> command;

  Outcome run(const std::vector<std::string>& more) const {
    std::vector<std::string> words = command;
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, kLimitSeconds);
  }
};

ReadTrace read(const std::string& path) {
  std::vector<std::string> broken;
  ReadTrace trace = read_by_perfettos_rules(read_text(path), broken);
  for (const std::string& sentence : broken) expect(false, path + ": " + sentence);
  return trace;
}

// What a rank has sent, by group, collective and element type: calls, bytes, messages.
using Sent = std::map<std::array<std::string, 3>, std::array<std::int64_t, 3>>;

Sent counted_by_transports(const Json& ledger) {
  Sent sent;
  for (const Json& line : ledger)
    sent[{line["group"], line["collective"], line["type"]}] = {line["calls"], line["bytes"], line["messages"]};
  return sent;
}

Sent seen_on(const std::vector<TraceSlice>& communication) {
  Sent sent;
  for (const TraceSlice& slice : communication) {
    auto& line = sent[{slice.args["group"], slice.args["collective"], slice.args["type"]}];
    line[0] += 1;
    line[1] += slice.args["bytes"].get<std::int64_t>();
    line[2] += slice.args["messages"].get<std::int64_t>();
  }
  return sent;
}

std::string text_of(const Sent& sent) {
  std::string text;
  for (const auto& [line, numbers] : sent)
    text += fmt::format("    {} over {}, {}: {} calls, {} bytes, {} messages\n", line[1], line[0], line[2], numbers[0],
                        numbers[1], numbers[2]);
  return text;
}

// A rank is one thread: it computes or it is in a call.
void expect_apart(const std::string& who, const ReadTrace& trace, std::int64_t rank) {
  std::vector<std::pair<std::int64_t, std::int64_t>> busy;
  for (const char* thread : {"computation", "communication"})
    for (const TraceSlice& slice : trace.on(rank, thread)) {
      const bool own = slice.category == "communication" || slice.category == "computation";
      if (own) busy.emplace_back(slice.begin, slice.end);
      expect(own ? slice.category == thread : std::string(thread) == "computation",
             fmt::format("{}: a slice of {} lies on the thread {}", who, slice.category, thread));
    }
  std::sort(busy.begin(), busy.end());
  for (std::size_t i = 1; i < busy.size(); ++i)
    if (busy[i].first < busy[i - 1].second) return expect(false, who + ": computation and communication overlap");
}

// The trace of all ranks: its slices are what the transports counted, which is what the lesson's cost table shows.
void check_all_ranks(const ReadTrace& trace) {
  const Json about = trace.whole.value("muonwalk", Json::object());
  expect(about.value("version", 0) == 1 && about.value("ok", false),
         "\"muonwalk\" lacks a version, or says that the run failed");
  const std::int64_t ranks = about.value("ranks", 0);
  expect(ranks > 0 && static_cast<std::int64_t>(trace.processes.size()) == ranks,
         "the trace has not one process per rank");
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::string who = fmt::format("rank {}", rank);
    expect(trace.processes.count(rank) > 0 && trace.processes.at(rank).rfind(who, 0) == 0,
           who + " is called something else");
    expect(!trace.on(rank, "computation").empty(), who + " did nothing");
    expect(about["dropped_events"][static_cast<std::size_t>(rank)] == 0, who + " dropped events");
    const Sent counted = counted_by_transports(about["ledger"][static_cast<std::size_t>(rank)]);
    const Sent seen = seen_on(trace.on(rank, "communication"));
    expect(seen == counted,
           fmt::format("{}: the slices are\n{}and the transports counted\n{}", who, text_of(seen), text_of(counted)));
    std::int64_t messages = 0;
    for (const auto& [line, numbers] : counted) messages += numbers[2];
    const std::int64_t arrows = trace.arrows.count(rank) > 0 ? trace.arrows.at(rank) : 0;
    expect(arrows == messages, fmt::format("{}: {} arrows leave it, and {} messages did", who, arrows, messages));
    expect_apart(who, trace, rank);
  }
}

// The file of one rank: the same calls, in PyTorch's words.
void check_one_rank(const ReadTrace& all, const ReadTrace& trace, std::int64_t rank) {
  const std::string who = fmt::format("rank_{}.json", rank);
  const Json about = trace.whole.value("distributedInfo", Json::object());
  expect(about.value("rank", -1) == rank, who + " is of another rank");
  expect(about.value("world_size", 0) == static_cast<std::int64_t>(all.processes.size()), who + " knows another world");
  std::size_t calls = 0, kernels = 0, all_kernels = 0;
  for (const TraceSlice& slice : all.on(rank, "computation")) all_kernels += slice.category == "computation";
  for (const auto& [thread, slices] : trace.slices)
    for (const TraceSlice& slice : slices) {
      if (slice.category != "kernel") continue;
      expect(slice.args.contains("stream") && slice.args["stream"] == thread.second,
             who + ": a kernel lies on another stream");
      const bool call = slice.name.rfind("gloo:", 0) == 0;
      (call ? calls : kernels) += 1;
      if (call)
        expect(slice.args.contains("Collective name") && slice.args.contains("dtype"), who + ": a call has no words");
    }
  expect(calls == all.on(rank, "communication").size(), who + " has not the same calls as the trace of all ranks");
  expect(kernels == all_kernels, who + " has not the same computation as the trace of all ranks");
}

void check_refusal(const Lesson& lesson, const std::vector<std::string>& options) {
  const Outcome outcome = lesson.run(options);
  const std::string what = fmt::format("{} {}", options[0], options[1]);
  expect(outcome.exit_code == 2, what + " ended " + end_text(outcome) + " instead of with code 2");
  expect(outcome.out.empty() && lines_of(outcome.err).size() == 1,
         what + " is not refused in one sentence:\n" + outcome.err);
}

void check(const Lesson& lesson) {
  const TemporaryFolder folder;
  const std::string file = folder.file("all.json"), ranks = folder.file("ranks");
  const Outcome plain = lesson.run({});
  const Outcome traced = lesson.run({"--trace", file, "--trace-per-rank", ranks});
  expect(traced.exit_code == 0, "--trace ended " + end_text(traced) + ":\n" + traced.err);
  if (failures > 0) return;
  expect(plain.out == traced.out, "--trace changes what is printed");
  const ReadTrace all = read(file);
  check_all_ranks(all);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ranks)) files += entry.is_regular_file();
  expect(files == all.processes.size(), "--trace-per-rank has not written one file per rank");
  for (std::size_t rank = 0; rank < all.processes.size(); ++rank)
    check_one_rank(all, read(fmt::format("{}/rank_{}.json", ranks, rank)), static_cast<std::int64_t>(rank));

  // Too small a buffer: the rest is counted, said and left out, and the lesson is the same.
  const Outcome small = lesson.run({"--trace", file, "--trace-events", "1"});
  expect(small.exit_code == 0 && small.out == plain.out, "--trace-events 1 changes what is printed");
  const ReadTrace few = read(file);
  std::int64_t dropped = 0;
  for (const Json& of_rank : few.whole["muonwalk"]["dropped_events"]) dropped += of_rank.get<std::int64_t>();
  expect(dropped > 0, "--trace-events 1 drops nothing");
  expect(small.err.find(fmt::format("lacks {} later ones", dropped)) != std::string::npos,
         "--trace-events 1 does not say what is missing:\n" + small.err);

  // A check that fails is worth a look at the trace.
  const Outcome bugs = lesson.run({"--list-bugs"});
  const std::string bug = bugs.out.substr(0, bugs.out.find(' '));
  const Outcome failed = lesson.run({"--bug", bug, "--trace", file});
  expect(failed.exit_code == 1, "--bug " + bug + " --trace ended " + end_text(failed));
  expect(read(file).whole["muonwalk"].value("ok", true) == false,
         "the trace of --bug " + bug + " says that all was well");

  check_refusal(lesson, {"--trace", folder.file("none/all.json")});
  check_refusal(lesson, {"--trace", ""});
  check_refusal(lesson, {"--trace-per-rank", file});
  check_refusal(lesson, {"--trace-events", "5"});
  const Outcome help = lesson.run({"--help"});
  for (const char* option : {"--trace ", "--trace-per-rank ", "--trace-events "})
    expect(help.out.find(option) != std::string::npos, std::string("--help does not explain ") + option);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "check_trace: no lesson is named; it takes a program and the arguments that it is run with\n";
    return 2;
  }
  setenv("NO_COLOR", "1", 1);
  check({{argv + 1, argv + argc}});
  return failures == 0 ? 0 : 1;
}
