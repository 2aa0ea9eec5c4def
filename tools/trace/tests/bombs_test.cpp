// Small files that unpack to more than any memory: what muonwalk-trace keeps of them is bounded. The peak is measured.

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk::testing;

namespace {

// What TraceBudget promises for a run.
constexpr long kMostKilobytes = 1'200'000;

// A compressed file, written a piece at a time: this program stays small, because the peak that is measured below
// counts from before its child becomes another program.
class Packed {
 public:
  explicit Packed(const std::string& path) : file_(gzopen(path.c_str(), "wb1")) { REQUIRE(file_ != nullptr); }
  ~Packed() { gzclose(file_); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  void add(const std::string& text) {
    REQUIRE(gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  }

 private:
  gzFile file_;
};

struct Bomb {
  std::string what;
  std::function<void(Packed&)> write;
  std::string said;  // by the one sentence
};

std::string metadata(const std::string& name, const std::string& process, const std::string& label) {
  return R"({"ph":"M","name":")" + name + R"(","pid":")" + process + R"(","args":{"name":")" + label + "\"}},";
}

std::string event(const std::string& category, const std::string& name, const std::string& more) {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","ts":1,"dur":1,"pid":0,"tid":7)" + more +
         "},";
}

const std::string kLong(900'000, 'a');
constexpr int kLongTexts = 260;

const std::vector<Bomb>& bombs() {
  static const std::vector<Bomb> all = {
      {"nested brackets",
       [](Packed& out) {
         const std::string brackets(1 << 20, '[');
         for (int i = 0; i < 400; ++i) out.add(brackets);
       },
       "nests its values more than 256 deep"},
      {"names of events that no figure counts",
       [](Packed& out) {
         for (int i = 0; i < kLongTexts; ++i) out.add(event("python_function", std::to_string(i) + kLong, ""));
       },
       "more events and names than are kept in memory"},
      {"names of processes",
       [](Packed& out) {
         for (int i = 0; i < kLongTexts; ++i) out.add(metadata("process_name", std::to_string(i), kLong));
       },
       "more events and names than are kept in memory"},
      {"groups of calls that differ in their size alone",
       [](Packed& out) {
         for (int i = 0; i < kLongTexts; ++i)
           out.add(event("kernel", "nccl",
                         R"(,"args":{"Collective name":"allreduce","Group size":)" + std::to_string(i) +
                             R"(,"Process Group Ranks":")" + kLong + "\"}"));
       },
       "more events and names than are kept in memory"},
      {"one name of 2 MiB", [](Packed& out) { out.add(event("kernel", std::string(2 << 20, 'a'), "")); },
       "and no more than 1048576 are kept of a name"},
  };
  return all;
}

}  // namespace

TEST_CASE("trace bombs: each is refused in one sentence, and the peak of memory is the one that is promised") {
  TemporaryFolder folder;
  const std::string path = folder.file("bomb.json.gz");
  for (const Bomb& bomb : bombs()) {
    CAPTURE(bomb.what);
    {
      Packed out(path);
      out.add("{\"traceEvents\":[");
      bomb.write(out);
      out.add(event("kernel", "gemm", "").substr(0, event("kernel", "gemm", "").size() - 1) + "]}");
    }
    const Outcome outcome = run_program({MUONWALK_TRACE_PROGRAM, "summary", path}, 120);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.find(bomb.said) != std::string::npos);
#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed
    rusage children{};
    REQUIRE(getrusage(RUSAGE_CHILDREN, &children) == 0);
    CHECK(children.ru_maxrss < kMostKilobytes);
#endif
  }
}

TEST_CASE("trace bombs: what real traces have is far from every limit") {
  TemporaryFolder folder;
  const std::string path = folder.file("trace.json.gz");
  {
    Packed out(path);
    out.add("{\"traceEvents\":[");
    for (int i = 0; i < 2000; ++i) {
      out.add(event("kernel", "kernel<" + std::to_string(i) + std::string(5000, 't') + ">", ""));
      out.add(metadata("thread_name", std::to_string(i), "thread " + std::to_string(i)));
    }
    out.add(event("kernel", "gemm", R"(,"args":)" + std::string(100, '[') + std::string(100, ']')));
    out.add(event("kernel", "gemm", "").substr(0, event("kernel", "gemm", "").size() - 1) + "]}");
  }
  const Outcome outcome = run_program({MUONWALK_TRACE_PROGRAM, "summary", path}, 120);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}
