// muonwalk-check trace: the calls in traces of lesson 09, and in hand-written ones of a program in PyTorch, against the
// plans of strategies.

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk;
using muonwalk::testing::Outcome;
using muonwalk::testing::TraceWriting;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

namespace {

// A run of the program; "kind: sentence" of what it found.
struct Checked {
  Outcome outcome;
  std::string verdict, found;
};

Checked checked(const Words& traces, const Words& options) {
  const TemporaryFolder folder;
  Words words = {MUONWALK_CHECK_PROGRAM, "trace"};
  words.insert(words.end(), traces.begin(), traces.end());
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--json", folder.file("verdict")});
  Checked run{muonwalk::testing::run_program(words, 120), {}, {}};
  CAPTURE(run.outcome.err);
  if (run.outcome.exit_code > 1) return run;
  const Json json = Json::parse(read_text(folder.file("verdict")));
  run.verdict = json["verdict"];
  CHECK((run.outcome.exit_code == 0) == (run.verdict == "clean"));
  for (const Json& each : json["findings"])
    run.found +=
        (each["kind"].is_null() ? "" : each["kind"].get<std::string>()) + ": " + each["sentence"].get<std::string>();
  return run;
}

const Words kSmall = {"--steps",    "3",          "--dp",          "2",     "--tp",           "2",
                      "--matrices", "12x12:rows", "16x40:columns", "56x16", "84x108:columns", "16x16:rows"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Lesson 09's trace of one step on dp 2 × tp 2, whose matrices are those of kSmall.
std::string trace_of_lesson(const TemporaryFolder& folder, const Words& options = {}) {
  const std::string path = folder.file("lesson.json");
  const Words run = {LESSON_09, "--small", "--dp", "2", "--tp", "2", "--steps", "3", "--verbose", "0", "--trace", path};
  REQUIRE(muonwalk::testing::run_program(with(run, options), 120).exit_code == 0);
  return path;
}

// What one rank of dp 2 × tp 2 does in a step of "gather everything" for a matrix of 8 × 4 that tp cuts by rows, whose
// bucket lies on both dp ranks: 16 elements are gathered over dp, 32 over tp, and 16 new weights over dp again.
struct Program {
  int steps = 2, times = 1;  // how often the calls come in a step
  std::string gathered = "BFloat16";
  int padding = 0;  // elements more in the gather over dp
  int norm = 0;     // elements of an all_reduce beside the rest
  bool gathers = true, newton_schulz = true, alternates = false;
  std::string weights = "Float";

  std::string write(const std::string& path, int rank = 0) const {
    TraceWriting trace(rank, 4);
    double at = 0;
    const auto call = [&](const char* what, int elements, const std::string& type, const char* ranks) {
      trace.collective("ncclDevKernel_" + std::string(what), at += 10, 5, elements, type, ranks, 2);
    };
    for (int step = 0; step < steps; ++step) {
      call("AllReduce_Sum_f32_RING_LL", 4096, "Float", "[0, 1]");  // of the model: outside of the optimizer's step
      const double begin = at += 10;
      for (int time = 0; time < times; ++time) {
        if (gathers) call("AllGather_RING_LL", 16 + padding, gathered, "[0, 2]");
        if (!alternates || step % 2 == 0) call("AllGather_RING_LL", 32, gathered, "[0, 1]");
        if (newton_schulz) trace.event("user_annotation", "zeropower_via_newtonschulz5", at += 1, 1);
        if (!weights.empty()) call("AllGather_RING_LL", 16, weights, "[0, 2]");
      }
      if (norm > 0) call("AllReduce_Sum_f32_RING_LL", norm, "Float", "[0, 1]");
      at += 10;
      trace.event("user_annotation", "Optimizer.step#Muon.step", begin, at - begin);
      trace.event("gpu_user_annotation", "Optimizer.step#Muon.step", begin, at - begin);
    }
    return trace.write(path);
  }
};

const Words kOne = {"--matrices", "8x4:rows", "--dp", "2", "--tp", "2"};

Checked checked(const Program& program, const Words& options = kOne) {
  const TemporaryFolder folder;
  return checked({program.write(folder.file("trace.json"))}, options);
}

}  // namespace

TEST_CASE("what lesson 09 does is its plan, by each way in which it deals out elements") {
  const std::vector<std::pair<Words, std::string>> ways = {{{}, "a"}, {{"--ownership", "matrices"}, "d"}};
  for (const auto& [ownership, plan] : ways) {
    CAPTURE(plan);
    const TemporaryFolder folder;
    const std::string trace = trace_of_lesson(folder, ownership);
    const Words layout = with(kSmall, {"--fp32"});
    const Checked own = checked({trace}, with(layout, {"--plan", plan}));
    CAPTURE(own.outcome.out);
    CHECK(own.verdict == "clean");
    CHECK(own.outcome.out.find("Newton–Schulz") != std::string::npos);
    const std::string other = plan == "a" ? "d" : "a";
    const Checked another = checked({trace}, with(layout, {"--plan", other}));
    CHECK(another.verdict == "differs");
    CHECK(another.found.find("another_strategy: the calls are those of") == 0);
    CHECK(another.outcome.out.find("another_strategy: Newton–Schulz, all_gather over dp, all_gather over tp\n") !=
          std::string::npos);
  }
  const TemporaryFolder folder;
  const std::string trace = trace_of_lesson(folder, {"--precision", "bf16"});
  CHECK(checked({trace}, kSmall).verdict == "clean");
  CHECK(checked({trace}, with(kSmall, {"--fp32"})).verdict == "differs");
}

TEST_CASE("what a program in PyTorch does beside its plan is named") {
  Program program;
  CHECK(checked(program).verdict == "clean");
  program.newton_schulz = false;  // it has no name in this trace, so nobody asks
  CHECK(checked(program).verdict == "clean");
  const std::pair<std::function<void(Program&)>, std::string> faults[] = {
      {[](Program& p) { p.times = 3; }, "micro_batch_steps: Newton–Schulz comes 3 times as often"},
      {[](Program& p) { p.padding = 4; }, "padded_calls: "},
      {[](Program& p) { p.norm = 1; }, "norm_after_step: "},
      {[](Program& p) { p.norm = 4096; }, ": calls or bytes differ"},
      {[](Program& p) { p.gathered = "Float"; }, "gathered_unrounded: "},
      {[](Program& p) { p.padding = -4; }, ": calls or bytes differ"}};
  for (const auto& [fault, found] : faults) {
    Program faulty;
    fault(faulty);
    const Checked run = checked(faulty);
    CAPTURE(run.outcome.out);
    CHECK(run.verdict == "differs");
    CHECK(run.found.find(found) != std::string::npos);
  }
  Program rounded;  // new weights in bfloat16
  rounded.weights = "BFloat16";
  CHECK(checked(rounded, with(kOne, {"--weights", "bf16"})).verdict == "clean");
  CHECK(checked(rounded).verdict == "differs");
  Program no_weights;  // which are gathered elsewhere
  no_weights.weights = "";
  CHECK(checked(no_weights, with(kOne, {"--weights", "none"})).verdict == "clean");
  CHECK(checked(no_weights).verdict == "differs");
  CHECK(checked(rounded, with(kOne, {"--weights", "fp8"})).outcome.exit_code == 2);
  CHECK(checked(Program(), {"--matrices", "8x4:rows*2", "--dp", "2", "--tp", "2"}).verdict == "differs");
  Program by_blocks;  // that are joined in every other step alone
  by_blocks.gathers = false, by_blocks.alternates = true, by_blocks.gathered = "Float";
  CHECK(checked(by_blocks, with(kOne, {"--plan", "h"})).verdict == "clean");
  CHECK(checked(by_blocks, with(kOne, {"--plan", "d"})).verdict == "differs");
  Program owners;  // for whom nothing is gathered over dp
  owners.gathers = false;
  const Checked run = checked(owners, with(kOne, {"--plan", "d"}));
  CAPTURE(run.outcome.out);
  CHECK(run.verdict == "clean");
}

TEST_CASE("ranks are told apart, and what can't be judged is refused in a sentence") {
  const TemporaryFolder folder;
  Program right, wrong;
  wrong.gathers = false;
  const Words both = {right.write(folder.file("0.json"), 0), wrong.write(folder.file("2.json"), 2)};
  const Checked run = checked(both, kOne);
  CHECK(run.verdict == "differs");
  CHECK(run.outcome.out.find("rank 2") != std::string::npos);

  TraceWriting nothing(0, 4);
  nothing.kernel("gemm", 1, 1).event("gpu_user_annotation", "Optimizer.step#Muon.step", 0, 9);
  TraceWriting no_steps(0, 4);
  no_steps.collective("ncclDevKernel_AllGather_RING_LL", 1, 2, 32, "BFloat16", "[0, 1]", 2);
  const std::string empty = nothing.write(folder.file("empty.json")),
                    stepless = no_steps.write(folder.file("no_steps.json"));
  const std::tuple<Words, Words, std::string> refused[] = {
      {{both[0]}, {"--matrices", "8x4", "--dp", "2"}, "give --dp and --tp of that run"},
      {{both[0]}, with(kOne, {"--plan", "telepathy"}), "--plan telepathy is not known; it is a letter from a to h"},
      {{both[0]}, {"--matrices", "8by4", "--dp", "2", "--tp", "2"}, "lists no matrix"},
      {{both[0]}, {"--matrices", "8x4:depth", "--dp", "2", "--tp", "2"}, "lists no matrix"},
      {{both[0]}, {"--matrices", "8x4*0", "--dp", "2", "--tp", "2"}, "lists no matrix"},
      {{both[0]}, {"--matrices", "7x4:rows", "--dp", "2", "--tp", "2"}, "--tp 2 does not divide the 7 rows"},
      {{empty}, kOne, "no collective lies in the optimizer's steps"},
      {{stepless}, kOne, "names no step of an optimizer"}};
  for (const auto& [traces, options, sentence] : refused) {
    const Checked no = checked(traces, options);
    CAPTURE(no.outcome.err);
    CHECK(no.outcome.exit_code == 2);
    CHECK(no.outcome.err.find(sentence) != std::string::npos);
  }
  CHECK(checked({stepless}, with(kOne, {"--steps", "1"})).verdict == "differs");
  const Checked page = checked({both[0]}, with(kOne, {"--html", folder.file("page.html")}));
  CHECK(page.outcome.exit_code == 2);
  CHECK(page.outcome.err.find("--html goes with a dump, and trace judges traces alone") != std::string::npos);
  CHECK(checked({both[0]}, with(kOne, {"--replicas"})).outcome.exit_code == 2);
}
