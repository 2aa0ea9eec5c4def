// The program muonwalk-trace: each of its commands prints the files that it was given, all of them, in their
// order; nothing of what it reads can keep it waiting.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tools/trace/output.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

using Words = std::vector<std::string>;

// What the program prints with these words; it has to end with `code` and to say nothing else.
std::string printed(Words words, int code = 0) {
  words.insert(words.begin(), MUONWALK_TRACE_PROGRAM);
  const Outcome outcome = run_program(words, 60);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == code);
  CHECK(outcome.err == "");
  return outcome.out;
}

Words plus(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string text_of_lines(const Words& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Runs that differ in all that is said of them: a folder of two ranks, a lesson's, and files of three ranks.
struct Runs {
  Runs() {
    REQUIRE(mkdir(folder.file("ranks").c_str(), 0700) == 0);
    for (int rank = 0; rank < 3; ++rank) {
      TraceWriting trace(rank, 3);
      trace.event("user_annotation", "ProfilerStep#1", 0, 100 + rank).kernel("a" + std::to_string(rank), 10, 20 + rank);
      trace.collective("allreduce", 40, 30 - 7 * rank, 64, "Float", "[0, 1, 2]", 3);
      three.push_back(trace.write(folder.file(fmt::format("of_three_{}.json", rank))));
    }
    TraceWriting(1, 2).kernel("second", 5, 10).write(folder.file("ranks/rank_1.json.gz"));
    TraceWriting(0, 2).kernel("first", 0, 17).write(folder.file("ranks/rank_0.json"));
    ranks = folder.file("ranks");
    lesson = folder.file("lesson.json");
    write_text(lesson, lesson_trace());
    rich = folder.file("rich.json");
    write_text(rich, rich_trace());
  }
  TemporaryFolder folder;
  Words three;
  std::string ranks, lesson, rich;
};

}  // namespace

TEST_CASE("muonwalk-trace summary: what it prints is of all its files, in every form") {
  const Runs runs;
  const std::vector<Words> asked = {
      runs.three, {runs.ranks}, {runs.lesson}, {runs.rich}, {runs.three[2], runs.three[0]}};
  for (const Words& files : asked) {
    CAPTURE(files.front());
    const Summary summary = summarize(read_traces(files));
    const Words words = plus({"summary"}, files);
    CHECK(printed(words) == text_of_lines(summary_text(summary)));
    CHECK(printed(plus(words, {"--json"})) == summary_json(summary));
  }
}

TEST_CASE("muonwalk-trace published: each of the four files stands in its own place") {
  const Runs runs;
  const Words all = {runs.three[0], runs.rich, runs.lesson, runs.three[1]};
  std::vector<TraceFile> files;
  for (const std::string& path : all) files.push_back(read_trace(path));
  for (const bool async : {false, true}) {
    CAPTURE(async);
    const std::size_t count = async ? 4 : 2;
    const std::vector<PublishedClaim> claims =
        published_claims({files.begin(), files.begin() + static_cast<long>(count)});
    const Words paths(all.begin(), all.begin() + static_cast<long>(count));
    const Words words =
        async ? Words{"published", all[0], all[1], "--async", all[2], all[3]} : Words{"published", all[0], all[1]};
    CHECK(printed(words, 1) == text_of_lines(published_text(claims, paths)));
  }
}

TEST_CASE("muonwalk-trace: a pipe that nobody writes to is refused, and not waited for") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  const Outcome outcome = run_program({MUONWALK_TRACE_PROGRAM, "summary", folder.file("pipe")}, 20);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find("it is not a regular file") != std::string::npos);
}

TEST_CASE("reading files: of a large one, plain or packed, all is read, and where it ends or is damaged is said") {
  const TemporaryFolder folder;
  TraceWriting trace;
  for (int i = 0; i < 30'000; ++i) trace.kernel(fmt::format("kernel {}", i * 7919 % 30'011), i, 0.5);
  const std::string text = trace.json(), plain = trace.write(folder.file("t.json")),
                    packed = trace.write(folder.file("t.json.gz"));
  REQUIRE(text.size() > (3u << 20));
  const auto refusal = [](const std::string& path) {
    try {
      read_trace(path);
    } catch (const muonwalk::UsageError& error) {
      const std::string said = error.what();
      return said.substr(path.size() + 2);
    }
    return std::string();
  };
  for (const std::string& path : {plain, packed}) {
    const TraceFile file = read_trace(path);
    CHECK(file.events.size() == 30'000);
    CHECK(file.path == path);
  }
  write_text(folder.file("cut.json"), text.substr(0, 2'500'000));
  CHECK(refusal(folder.file("cut.json")).find(" is cut off: its JSON ends after 2500000 bytes in the middle") == 0);
  std::string wrong = text;
  wrong[2'400'000] = '\x01';
  write_text(folder.file("wrong.json"), wrong);
  CHECK(refusal(folder.file("wrong.json")).find(" is not JSON at byte 2400001 (") == 0);
  const std::string bytes = read_text(packed);
  write_text(folder.file("cut.json.gz"), bytes.substr(0, bytes.size() - 12));
  CHECK(refusal(folder.file("cut.json.gz")).find(" can't be read as a trace: its gzip data are cut off after ") == 0);
  std::string damaged = bytes;
  damaged[damaged.size() - 6] ^= 0x55;  // of the checksum
  write_text(folder.file("damaged.json.gz"), damaged);
  CHECK(refusal(folder.file("damaged.json.gz")).find(" can't be read as a trace: its gzip data are damaged after ") ==
        0);
}

TEST_CASE("a hundred thousand groups take seconds of processor time, for each call finds its line at once") {
  constexpr int kGroups = 100'000;
  const TemporaryFolder folder;
  TraceWriting trace;
  for (int i = 0; i < kGroups; ++i)
    trace.collective("allreduce", 2 * i, 1, 4, "Float", fmt::format("[{}, {}]", 2 * i, 2 * i + 1), 2);
  const auto seconds = [] {  // where each call is compared with all lines, it takes more than 60
    const rlimit limit = {15, 15};
    setrlimit(RLIMIT_CPU, &limit);
  };
  const Outcome outcome =
      run_program({MUONWALK_TRACE_PROGRAM, "summary", trace.write(folder.file("groups.json"))}, 300, seconds);
  CHECK(outcome.exit_code == 0);
  const Words lines = lines_of(outcome.out);
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("all_reduce") != std::string::npos && line.find(", ") != std::string::npos;
        }) >= kGroups);
}

TEST_CASE("reading files: whatever comes of it, no file stays open") {
  const TemporaryFolder folder;
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  TraceWriting().kernel("gemm", 0, 1).write(folder.file("good.json"));
  TraceWriting().kernel("gemm", 0, 1).write(folder.file("good.json.gz"));
  write_text(folder.file("empty"), "");
  write_text(folder.file("prose"), "no trace");
  const auto before = open_files();
  for (const std::string& path : {folder.path(), folder.file("empty"), folder.file("prose"), folder.file("nowhere"),
                                  folder.file("good.json"), folder.file("good.json.gz")}) {
    CAPTURE(path);
    try {
      read_trace(path);
      CHECK(path.find("good") != std::string::npos);
    } catch (const muonwalk::UsageError&) {
      CHECK(path.find("good") == std::string::npos);
    }
    CHECK(open_files() == before);
  }
  CHECK(summarize({}).ranks.empty());
}
