#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/trace/output.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

Outcome trace_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), MUONWALK_TRACE_PROGRAM);
  return run_program(arguments, 120);
}

// The program refuses: exit code 2, nothing on standard output, one line that says all of `parts`.
void expect_refusal(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const Outcome outcome = trace_program(arguments);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK(outcome.err.rfind("muonwalk-trace: ", 0) == 0);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(outcome.err.find(part) != std::string::npos);
  }
}

// Reads a file and prints it in every way; false when it was refused with a sentence.
bool survives(const std::string& path) {
  try {
    const Summary summary = summarize(read_traces({path}));
    CHECK_FALSE(summary_text(summary).empty());
    CHECK_FALSE(summary_json(summary).empty());
    if (summary.together.span_ns == 0) CHECK_FALSE(summary.notes.empty());  // never a zero without a word
    return true;
  } catch (const muonwalk::UsageError& error) {
    CHECK(std::string(error.what()).find("\"" + path + "\"") == 0);
    return false;
  }
}

// Changes a text as a broken disk or a careless script might.
std::string corrupted(std::string text, std::mt19937& random) {
  for (unsigned times = 1 + random() % 3; times > 0 && !text.empty(); --times) {
    const std::size_t at = random() % text.size();
    const std::size_t length = std::min<std::size_t>(text.size() - at, 1 + random() % 40);
    switch (random() % 6) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.insert(at, std::string(length, "-9e{[\"]},:\\\0"[random() % 13]));
        break;
      default: {
        // A number becomes another one: the JSON stays whole and what it says becomes odd.
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          text.replace(digit, 1,
                       std::array<const char*, 4>{"-7", "99999999999999999999", "1e400", "null"}[random() % 4]);
      }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("bad traces: the program refuses each with a sentence and exit code 2") {
  TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& text) {
    write_text(folder.file(name), text);
    return folder.file(name);
  };
  expect_refusal({"summary", folder.file("nowhere.json")}, {"nowhere.json", "No such file"});
  expect_refusal({"summary", folder.path()}, {"it is a folder"});
  expect_refusal({"summary", "/dev/null"}, {"it is not a regular file"});
  expect_refusal({"summary", ""}, {"''"});
  expect_refusal({"summary", file("empty", "")}, {"it is empty"});
  expect_refusal({"summary", file("prose", "This is not a trace.")}, {"is not JSON at byte 1", "torch.profiler"});
  expect_refusal({"summary", file("cut", rich_trace().substr(0, 900))}, {"is cut off", "after 900 bytes"});
  expect_refusal({"summary", file("other", "{\"results\": [1, 2]}")}, {"no array \"traceEvents\""});
  expect_refusal({"summary", file("number", "42")}, {"no array \"traceEvents\""});
  expect_refusal({"summary", file("none", "{\"traceEvents\": []}")}, {"it has no events at all"});
  expect_refusal({"summary", file("runtime", TraceWriting().event("cuda_runtime", "cudaLaunchKernel", 0, 1).json())},
                 {"no kernel, no range and no operator", "one event is left out", "cuda_runtime"});
  expect_refusal({"summary", file("negative", TraceWriting().kernel("gemm", 0, -1).json())}, {"a negative duration"});
  expect_refusal({"summary", file("tail", rich_trace() + "}")}, {"is not JSON at byte"});
  expect_refusal({"summary", file("good", rich_trace()), file("lesson", lesson_trace())},
                 {"don't belong together", "a pytorch trace and the other a muonwalk trace"});
  expect_refusal({"summary", folder.file("good"), folder.file("nowhere.json")}, {"nowhere.json"});
  expect_refusal({"published", folder.file("good"), folder.file("prose")}, {"prose\" is not JSON"});
}

TEST_CASE(
    "bad traces: nobody reads any more: it ends in the same way, whatever was done to signals before it started") {
  TemporaryFolder folder;
  write_text(folder.file("trace"), rich_trace());
  const auto into_closed_pipe = [&](bool ignored) {
    return run_program({MUONWALK_TRACE_PROGRAM, "summary", folder.file("trace")}, 120, [ignored] {
      int ends[2];
      if (pipe(ends) != 0) _exit(99);
      close(ends[0]);
      dup2(ends[1], STDOUT_FILENO);
      if (ignored) signal(SIGPIPE, SIG_IGN);
    });
  };
  const Outcome plain = into_closed_pipe(false), inherited = into_closed_pipe(true);
  CHECK(plain.exit_code != 0);
  CHECK(inherited.exit_code == plain.exit_code);
  CHECK(inherited.signal == plain.signal);
  CHECK(inherited.err == plain.err);
}

TEST_CASE("bad traces: what is asked in a wrong way is refused with a sentence") {
  TemporaryFolder folder;
  const std::string commands = "muonwalk-trace takes summary, published, and muonwalk-trace --help says";
  expect_refusal({}, {"a command is missing; " + commands});
  expect_refusal({"summary", ""}, {"FILE '' is empty"});
  expect_refusal({"published", "a", "b", "--async", "c", ""}, {"--async '' is empty"});
  expect_refusal({"sumary", "x"}, {"sumary is not a command; " + commands});
  expect_refusal({"summary"}, {"FILE"});
  expect_refusal({"published", "a", "b", "--async", "c"}, {"--async"});
  expect_refusal({"published", "a"}, {"FILE_ADAMW"});
  expect_refusal({"published", "a", "b", "--async", "c", "d", "e"}, {"e"});
  expect_refusal({"published", "a", "b", "--json"}, {"--json"});
  expect_refusal({"summary", "x", "--async", "a", "b"}, {"--async"});
  expect_refusal({"summary", "x", "--xml"}, {"--xml"});
  for (const char* gone : {"--csv", "--svg", "--html"}) expect_refusal({"summary", "x", gone}, {gone});
  expect_refusal({"summary", folder.file("nowhere/a")}, {"nowhere"});
}

TEST_CASE("bad traces: the help of a command names all of its options and files, and those of no other") {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> helps = {
      {{"--help"}, {"summary", "published"}},
      {{"summary", "--help"}, {"FILE", "--json"}},
      {{"published", "-h"}, {"FILE_MUON", "FILE_ADAMW", "--async"}}};
  for (const auto& [words, named] : helps) {
    CAPTURE(words.front());
    const Outcome outcome = trace_program(words);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err == "");
    for (const std::string& name : named) CHECK(outcome.out.find(name) != std::string::npos);
    CHECK((outcome.out.find("--json") != std::string::npos) == (named.back() == "--json"));
  }
}

TEST_CASE("bad traces: published figures that don't come out end the program with 1, also where one of them does") {
  TemporaryFolder folder;
  TraceWriting forty;  // as many events named all_gather as in the published trace of Muon
  for (int i = 0; i < 40; ++i) forty.event("cpu_op", "c10d::_allgather_base_", i, 0.5);
  forty.kernel("gemm", 0, 1);
  forty.write(folder.file("forty.json"));
  write_text(folder.file("other.json"), rich_trace());
  const Outcome outcome = trace_program({"published", folder.file("forty.json"), folder.file("other.json")});
  CHECK(outcome.exit_code == 1);
  for (const char* words : {"✘", "1 of 12 published figures", "These are not the published traces"})
    CHECK(outcome.out.find(words) != std::string::npos);
}

TEST_CASE("bad traces: a file of 1 GiB that is not a trace is refused, and not read into memory") {
  TemporaryFolder folder;
  write_text(folder.file("zeros"), "");
  REQUIRE(truncate(folder.file("zeros").c_str(), 1L << 30) == 0);  // takes no room on the disk
  expect_refusal({"summary", folder.file("zeros")}, {"is not JSON at byte 1"});
}

TEST_CASE("bad traces: a text without an end, and nesting without an end, fill no memory") {
  TemporaryFolder folder;
  write_text(folder.file("long"), "{\"traceEvents\": [{\"name\": \"" + std::string(70 << 20, 'a') + "\"}]}");
  expect_refusal({"summary", folder.file("long")}, {"more than 64 MiB follow without an end"});
  write_text(folder.file("deep"), "{\"traceEvents\": " + std::string(1 << 20, '['));
  expect_refusal({"summary", folder.file("deep")}, {"nests its values more than 256 deep"});
}

TEST_CASE("bad traces: cut off at any byte, a trace is refused") {
  TemporaryFolder folder;
  for (const std::string& whole : {rich_trace(), lesson_trace()}) {
    const std::size_t end = whole.find_last_of('}');
    for (std::size_t length = 1; length <= end; length += 7) {
      CAPTURE(length);
      write_text(folder.file("cut"), whole.substr(0, length));
      CHECK_FALSE(survives(folder.file("cut")));
    }
  }
}

TEST_CASE("bad traces: 200 random corruptions give a sentence, or figures") {
  TemporaryFolder folder;
  int refused = 0, read = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    write_text(folder.file("t"), corrupted(seed % 2 == 0 ? rich_trace() : lesson_trace(), random));
    ++(survives(folder.file("t")) ? read : refused);
  }
  CHECK(refused > 20);  // both happen, or the corruptions try nothing
  CHECK(read > 20);
}
