// What a run writes besides its lines: whole files or none, and nothing else, however it ends.

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/fault_cases.hpp"

using namespace muonwalk::testing;

namespace {

using Words = std::vector<std::string>;

void named_files() { setenv("MUONWALK_UNNAMED_FILES", "off", 1); }

std::string unfinished_program() {
  const std::string fault = fault_program();
  return fault.substr(0, fault.rfind('/') + 1) + "unfinished_program";
}

// A disk that is full after this many bytes of a file.
void limit_file_size(rlim_t most) {
  const rlimit limit{most, most};
  setrlimit(RLIMIT_FSIZE, &limit);
}

Words with_outputs(const TemporaryFolder& folder, Words words) {
  words.insert(words.begin(), fault_program());
  words.insert(words.end(), {"--timeout", "5", "--dp", "2", "--tp", "1", "--record", folder.file("run.json"), "--trace",
                             folder.file("trace.json"), "--svg", folder.file("pictures/of/it/"), "--trace-per-rank",
                             folder.file("ranks/of/it")});
  return words;
}

}  // namespace

TEST_CASE("outputs: signals end a program in the middle of a file: a sentence, exit 3, and nothing is left") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(number);
    const TemporaryFolder folder;
    Program program({unfinished_program(), folder.path(), "wait"}, named_files);
    REQUIRE(program.wait_for_output("ready", kFaultLimitSeconds));
    CHECK(folder.names().size() == 2);
    kill(program.pid(), number);
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.err == "unfinished_program: interrupted\n");
    CHECK(folder.names().empty());
  }
}

TEST_CASE("outputs: a program that ends by itself, or of a closed pipe, leaves nothing that is unfinished either") {
  const TemporaryFolder folder;
  CHECK(run_program({unfinished_program(), folder.path(), "exit"}, kFaultLimitSeconds, named_files).exit_code == 5);
  CHECK(folder.names().empty());
  CHECK(run_program({unfinished_program(), folder.path(), "throw"}, kFaultLimitSeconds, named_files).exit_code == 6);
  CHECK(folder.names().empty());
  const Outcome piped = run_program({unfinished_program(), folder.path(), "write"}, kFaultLimitSeconds, [] {
    named_files();
    no_reader();
  });
  CHECK(piped.signal == SIGPIPE);
  CHECK(piped.err.empty());
  CHECK(folder.names().empty());
}

TEST_CASE("outputs: a lesson that is interrupted leaves no file and no folder") {
  for (const int number : {SIGINT, SIGQUIT}) {
    const TemporaryFolder folder;
    Program program(with_outputs(folder, {"--mode", "loop", "--seconds", "60"}), named_files);
    REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
    CHECK(folder.names() == Words{"pictures", "ranks"});
    kill(-program.pid(), number);
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"interrupted"});
    CHECK(folder.names().empty());
  }
}

TEST_CASE(
    "outputs: a lesson that fails, or that nobody reads, leaves no folder that it made; one that ends well, its "
    "files") {
  const TemporaryFolder folder;
  CHECK(run_program(with_outputs(folder, {"--fault", "throw:1:1"}), kFaultLimitSeconds).exit_code == 3);
  CHECK(folder.names().empty());
  CHECK(run_program(with_outputs(folder, {"--verbose", "2"}), kFaultLimitSeconds, no_reader).signal == SIGPIPE);
  CHECK(folder.names().empty());
  CHECK(run_program(with_outputs(folder, {}), kFaultLimitSeconds).exit_code == 0);
  CHECK(folder.names() == Words{"pictures", "ranks", "run.json", "trace.json"});
}

TEST_CASE("outputs: where a file can't be written, OK is not printed, and a sentence says which") {
  const TemporaryFolder folder;
  for (const char* option : {"--record", "--trace", "--svg"}) {
    CAPTURE(option);
    const std::string file = folder.file("file.svg");
    const Outcome outcome = run_program({fault_program(), "--verbose", "0", "--timeout", "5", option, file},
                                        kFaultLimitSeconds, [] { limit_file_size(1000); });
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.out.find("OK") == std::string::npos);
    expect_sentence(outcome, {"can't write \"" + file + "\"", "File too large", "make room"});
    CHECK(folder.names().empty());
  }
}

TEST_CASE("outputs: memory that is not there is a sentence that says how much was asked for, and by whom") {
  for (const Words& world : std::vector<Words>{{}, {"--world", "fibers"}}) {
    Words command = {fault_program(), "--timeout", "5", "--mode", "memory", "--culprit", "1"};
    command.insert(command.end(), world.begin(), world.end());
    const Outcome outcome = run_program(command, kFaultLimitSeconds, [] {
      // AddressSanitizer, where it is there, shall refuse like the system, and not say so among our errors.
      setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1:log_path=stdout", 1);
    });
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"rank 1", "not enough memory", "1152921504606846976 elements of 4 bytes", "try "});
    CHECK(outcome.err.find("bad_alloc") == std::string::npos);
  }
}
