#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/ranks/run_program.hpp"

// Lessons with --transport nccl, over both stand-ins. What they print when all goes well is compared lesson by lesson
// (tests/lessons/check_lesson.py).

using namespace muonwalk::testing;

namespace {

struct Setting {
  const char* variable;
  std::string value;
};

Outcome lesson_02(const std::vector<std::string>& options, const std::vector<Setting>& settings) {
  std::vector<std::string> command = {LESSON_02, "--transport", "nccl"};
  command.insert(command.end(), options.begin(), options.end());
  return run_program(command, 60, [&] {
    for (const Setting& setting : settings) setenv(setting.variable, setting.value.c_str(), 1);
  });
}

void check_says(const Outcome& outcome, int code, const std::string& words) {
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == code);
  CHECK(outcome.err.rfind("lesson_02_collectives: ", 0) == 0);
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK(outcome.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("--transport nccl: what is missing is said in one sentence, before anything is printed, and the code is 2") {
  const auto refused = [](const std::vector<std::string>& options, const Setting& setting, const std::string& words) {
    const Outcome outcome = lesson_02(options, {setting});
    check_says(outcome, 2, words);
    CHECK(outcome.out == "");
  };
  refused({}, {"MUONWALK_NCCL_LIBRARY", "/nowhere"}, "--transport nccl can't be used here: MUONWALK_NCCL_LIBRARY=");
  refused({}, {"MUONWALK_STAND_IN_DEVICES", "3"}, "--transport nccl with 4 ranks");
}

TEST_CASE("--transport nccl: what breaks on the way names the rank, and no rank waits for its timeout") {
  check_says(lesson_02({}, {{"MUONWALK_STAND_IN_NCCL_FAIL", "ncclSend:2@2"}}), 3,
             "rank 2 failed in step 'reduce_scatter: a sum for everybody': rank 2 of group dp 0 called ncclSend in "
             "reduce_scatter on device 2, and NCCL failed: internal error");
  check_says(lesson_02({}, {{"MUONWALK_STAND_IN_NCCL_FAIL", "async:2@0"}}), 3,
             "rank 0 of group dp 0 called ncclCommGetAsyncError in reduce_scatter on device 0, and NCCL failed: "
             "unhandled cuda error");
  check_says(lesson_02({}, {{"MUONWALK_STAND_IN_NCCL_FAIL", "die:2@1"}}), 3,
             "rank 1 exited early with code 9 in step 'reduce_scatter: a sum for everybody'");
  // A call that is never done looks like ranks that wait for each other, which the program gives up after --timeout.
  check_says(lesson_02({"--timeout", "1"}, {{"MUONWALK_STAND_IN_NCCL_FAIL", "hang:2"}}), 3,
             "nothing moved in step 'reduce_scatter: a sum for everybody' for 1 s: every rank waits");
}

TEST_CASE("--transport nccl --products chain: Newton–Schulz is computed on the GPU, where its kernels fail") {
  for (const bool chain : {false, true}) {
    const std::vector<std::string> command = {LESSON_06, "--transport", "nccl", "--products",
                                              chain ? "chain" : "eigen"};
    const Outcome outcome = run_program(
        command, 60, [] { setenv("MUONWALK_STAND_IN_FAIL", "cuLaunchKernel:1:CUDA_ERROR_LAUNCH_FAILED", 1); });
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == (chain ? 3 : 0));
    CHECK((outcome.err.find("CUDA_ERROR_LAUNCH_FAILED") != std::string::npos) == chain);
  }
}

TEST_CASE("--transport nccl: two ranks share a GPU where NCCL bears it, and a plan needs none") {
  const Outcome shared =
      lesson_02({}, {{"MUONWALK_STAND_IN_DEVICES", "2"}, {"MUONWALK_STAND_IN_NCCL_SHARED_DEVICE", "1"}});
  CHECK(shared.exit_code == 0);
  CHECK(shared.out.find("4 processes over NCCL") != std::string::npos);
  const Outcome plan = run_program({LESSON_09, "--transport", "nccl", "--plan", "--dp", "64"}, 60);
  CHECK(plan.exit_code == 0);  // which starts no rank, and needs no GPU
}
