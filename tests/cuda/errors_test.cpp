// What can be missing, and what can fail: one sentence, and nothing is left on the device.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/ranks/run_program.hpp"

using namespace muonwalk::testing;

namespace {

namespace fs = std::filesystem;

struct Run {
  Outcome outcome;
  std::map<std::string, long> report;  // the stand-in's: calls by function, and what is left
};

// Runs use_cuda with these variables in its environment, over the stand-in or another library; null is the system's
// own.
Run use_cuda(const std::vector<std::string>& variables, const char* library = CUDA_STAND_IN) {
  std::string folder = (fs::temp_directory_path() / "use_cuda_XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::vector<std::string> command = {"/usr/bin/env", "-u", "MUONWALK_CUDA_LIBRARY",
                                      "MUONWALK_STAND_IN_REPORT=" + folder};
  if (library != nullptr) command.push_back(std::string("MUONWALK_CUDA_LIBRARY=") + library);
  command.insert(command.end(), variables.begin(), variables.end());
  command.push_back(USE_CUDA);
  Run run = {run_program(command, 60), {}};
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    std::ifstream lines(file.path());
    std::string name;
    for (long count = 0; lines >> name >> count;) run.report[name] = count;
  }
  fs::remove_all(folder);
  return run;
}

void expect(const Run& run, int exit_code, const std::string& sentence) {
  CAPTURE(run.outcome.err);
  CHECK(run.outcome.exit_code == exit_code);
  CHECK(lines_of(run.outcome.err).size() == 1);
  CHECK(run.outcome.err.find(sentence) != std::string::npos);
  CHECK(run.outcome.out == "");
}

}  // namespace

TEST_CASE("cuda: without a library, a function, a device or a driver that is new enough: one sentence, exit 2") {
  expect(use_cuda({}, "/nowhere/libcuda.so"), 2,
         "MUONWALK_CUDA_LIBRARY=/nowhere/libcuda.so names no library that can be opened");
  expect(
      use_cuda({}, "libm.so.6"), 2,
      "CUDA was asked for, and its library has no function cuInit: it is too old for this program, or another library");
  expect(use_cuda({"MUONWALK_STAND_IN_DEVICES=0"}), 2,
         "a GPU was asked for, and CUDA's driver finds none on this machine: cuInit says CUDA_ERROR_NO_DEVICE (no "
         "CUDA-capable device is detected)");
  expect(use_cuda({"MUONWALK_STAND_IN_DRIVER=11040"}), 2, "and the driver of this machine knows CUDA 11.4 and older");
  expect(use_cuda({"MUONWALK_STAND_IN_FAIL=cuInit:1:CUDA_ERROR_SYSTEM_NOT_READY"}), 2,
         "CUDA's driver cannot start: cuInit says CUDA_ERROR_SYSTEM_NOT_READY");
  // The system's own driver, if it has one: an answer either way.
  const Run own = use_cuda({}, nullptr);
  if (own.outcome.exit_code != 0) expect(own, 2, "was asked for, and ");
}

TEST_CASE("cuda: a device without room for it: one sentence that says how much was asked for, exit 3") {
  const Run run = use_cuda({"MUONWALK_STAND_IN_MEMORY=200"});
  expect(
      run, 3,
      "rank 1: cuMemAlloc of 140 bytes failed on device 0 (stand-in 0): CUDA_ERROR_OUT_OF_MEMORY (out of memory); the "
      "device has 200 bytes in all");
  CHECK(run.report.at("live") == 0);
}

TEST_CASE("cuda: any call that fails, and any work that fails later: one sentence with call, device and error's name") {
  const Run works = use_cuda({});
  REQUIRE(works.outcome.exit_code == 0);
  REQUIRE(works.report.at("live") == 0);
  REQUIRE(works.report.at("objects") == 0);
  // What gives back is not looked at: it fails when all has failed before.
  const std::set<std::string> giving_back = {"cuMemFree", "cuStreamDestroy", "cuModuleUnload",
                                             "cuDevicePrimaryCtxRelease"};
  int failures = 0;
  for (const auto& [function, calls] : works.report) {
    if (function.compare(0, 2, "cu") != 0) continue;
    for (long call = 1; call <= calls; call += calls > 20 && call > 3 ? calls / 6 : 1) {
      for (const std::string later : {"", ":later"}) {
        const bool work = function == "cuLaunchKernel" || function == "cuMemcpyAsync";
        if (!work && later != "") continue;
        CAPTURE(function + " " + std::to_string(call) + later);
        const Run run = use_cuda({"MUONWALK_STAND_IN_FAIL=" + function + ":" + std::to_string(call) +
                                  ":CUDA_ERROR_ILLEGAL_ADDRESS" + later});
        ++failures;
        if (run.outcome.exit_code == 0) {
          CHECK((giving_back.count(function) == 1 || function == "cuCtxSetCurrent"));
          CHECK(run.outcome.out == "equal\n");
        } else {
          const bool at_start = run.outcome.exit_code == 2;
          expect(run, at_start ? 2 : 3, later == "" ? function : "cuStreamQuery (work that was handed in before)");
          CHECK(run.outcome.err.find("CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access") != std::string::npos);
          if (!at_start) CHECK(run.outcome.err.find("rank 1: ") == 0);
          if (!at_start) CHECK(run.outcome.err.find("failed on device 0 (stand-in 0)") != std::string::npos);
        }
        if (run.report.count("live") == 0) continue;  // it never came to life
        CHECK(run.report.at("live") == 0);
        CHECK(run.report.at("objects") == 0);
      }
    }
  }
  CHECK(failures > 40);
}
