// What a run writes besides its lines: whole files or none, and nothing else, however it ends.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
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
                             folder.file("trace.json")});
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

namespace {

// Waits until a rank has begun a file in the folder.
void wait_for_a_file(const TemporaryFolder& folder) {
  for (int tenths = 0; folder.names().empty() && tenths < 10 * kFaultLimitSeconds; ++tenths) usleep(100000);
  REQUIRE(folder.names().size() == 1);
}

}  // namespace

TEST_CASE("outputs: however a run ends while a rank saves, nothing of the file is left") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0}) {
    CAPTURE(number);
    const TemporaryFolder folder;
    Program program({fault_program(), "--timeout", "30", "--dp", "2", "--tp", "1", "--mode", "saving", "--culprit", "1",
                     "--file", folder.file("checkpoint")},
                    named_files);
    wait_for_a_file(folder);
    if (number != 0)
      kill(program.pid(), number);
    else
      kill(children_of(program.pid()).at(1), SIGKILL);  // the rank itself
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome,
                    number != 0 ? Words{"interrupted", "nothing was left behind"} : Words{"rank 1", "SIGKILL"});
    CHECK(folder.names().empty());
  }
}

TEST_CASE("outputs: a lesson that is interrupted leaves no file and no folder") {
  for (const int number : {SIGINT, SIGQUIT}) {
    const TemporaryFolder folder;
    Program program(with_outputs(folder, {"--mode", "loop", "--seconds", "60"}), named_files);
    REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
    CHECK(folder.names().empty());
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
  CHECK(folder.names() == Words{"run.json", "trace.json"});
}

TEST_CASE("outputs: where a file can't be written, OK is not printed, and a sentence says which") {
  const TemporaryFolder folder;
  for (const char* option : {"--record", "--trace"}) {
    CAPTURE(option);
    const std::string file = folder.file("file");
    const Outcome outcome = run_program({fault_program(), "--verbose", "0", "--timeout", "5", option, file},
                                        kFaultLimitSeconds, [] { limit_file_size(1000); });
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.out.find("OK") == std::string::npos);
    expect_sentence(outcome, {"can't write \"" + file + "\"", "File too large", "make room"});
    CHECK(folder.names().empty());
  }
}

TEST_CASE("outputs: where one of several files can't be written, none of the others is there, and no folder") {
  const TemporaryFolder folder;
  const Words two_layouts = {"--mode", "two_layouts", "--culprit", "2"};  // the recording is that of the first one
  for (const auto& [options, most] :
       std::vector<std::pair<Words, rlim_t>>{{{}, 1000}, {{}, 5000}, {two_layouts, 1000}}) {
    const rlim_t limit = most;
    const Outcome outcome =
        run_program(with_outputs(folder, options), kFaultLimitSeconds, [limit] { limit_file_size(limit); });
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"can't write", "File too large"});
    CHECK(folder.names().empty());
  }
}

TEST_CASE("outputs: an interrupt when the files have their places changes nothing, and the run ends as it should") {
  const TemporaryFolder folder, beside;
  const std::string screen = beside.file("screen");
  REQUIRE(mkfifo(screen.c_str(), 0600) == 0);
  const int reader = open(screen.c_str(), O_RDWR | O_NONBLOCK);
  REQUIRE(reader >= 0);
  while (write(reader, "x", 1) == 1) {  // full, so that the program waits to say its last word
  }
  Program program(with_outputs(folder, {"--verbose", "0"}),
                  [&] { dup2(open(screen.c_str(), O_WRONLY), STDOUT_FILENO); });
  for (int tenths = 0; folder.names().size() < 2 && tenths < 10 * kFaultLimitSeconds; ++tenths) usleep(100000);
  REQUIRE(folder.names() == Words{"run.json", "trace.json"});
  usleep(200000);  // the last of them may have come first
  kill(program.pid(), SIGINT);
  usleep(200000);
  std::string said;
  char piece[4096];
  const auto take = [&] {
    for (ssize_t got = 0; (got = read(reader, piece, sizeof piece)) > 0;)
      said.append(piece, static_cast<std::size_t>(got));
  };
  take();
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  take();
  close(reader);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(said.find("fault_program: OK") != std::string::npos);
  CHECK(folder.names() == Words{"run.json", "trace.json"});
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
