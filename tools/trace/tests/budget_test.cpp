// What is paid for all that is kept of a trace, to the byte: the prices are those that TraceBudget promises.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "src/errors.hpp"
#include "tools/trace/raw_trace.hpp"
#include "tools/trace/reader.hpp"

using namespace muonwalk::sim;

namespace {

constexpr std::int64_t kAll = std::int64_t{1280} << 20;
constexpr std::int64_t kEvent = 152;

// A text with this many letters, as often as it is kept.
std::int64_t text_of(std::size_t letters) { return 6 * (static_cast<std::int64_t>(letters) + 64); }

// The most that a budget still pays for.
std::int64_t left_in(const TraceBudget& budget) {
  std::int64_t pays = 0;
  for (std::int64_t more = std::int64_t{1} << 40; more > 0; more /= 2) {
    TraceBudget copy = budget;
    try {
      copy.take(pays + more);
      pays += more;
    } catch (const muonwalk::UsageError&) {
    }
  }
  return pays;
}

std::int64_t paid_for(const std::string& events, const std::string& more = "") {
  TraceInput input("made up", "{\"traceEvents\": [" + events + "]" + more + "}");
  return kAll - left_in(read_raw_trace("made up", input).budget);
}

std::string kernel(const std::string& name, const std::string& args = "", const std::string& category = "kernel") {
  return R"({"ph": "X", "pid": 0, "tid": 77, "ts": 1, "dur": 1, "cat": ")" + category + R"(", "name": ")" + name +
         R"(", "args": {)" + args + "}}";
}

std::string metadata(const char* what, const std::string& name, const std::string& label) {
  return std::string(R"({"ph": "M", "name": ")") + what + R"(", "pid": 0, "tid": ")" + name +
         R"(", "args": {"name": ")" + label + "\"}}";
}

std::string refused(const std::string& text) {
  try {
    read_trace_text("made up", text);
  } catch (const muonwalk::UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("budget: whatever is kept is paid for, each time: events, new texts, calls and their kinds, names") {
  const std::string args =
      R"("Collective name": "allreduce", "dtype": "Float", "Group size": 2, "Process Group Name": "dp",
      "Process Group Ranks": "[0, 1]")";
  const std::int64_t call = sizeof(CollectiveCall);
  CHECK(paid_for("") == 0);
  CHECK(paid_for(metadata("thread_name", "321", "some")) == 0);
  // What stands there first, what comes behind it, and what that costs at least.
  const struct {
    std::string first, more;
    std::int64_t least;
  } rows[] = {{kernel("gemm"), kernel("gemm"), kEvent},
              {kernel("gemm"), kernel("other"), kEvent + text_of(5)},
              {kernel("gemm"), kernel("gemm", args), kEvent + call + text_of(7 + 6 + 2)},
              {kernel("gemm", args), kernel("gemm", args), kEvent + call},
              {kernel("gemm", args), kernel("gemm", args + R"(, "Group size": 3)"), kEvent + call + text_of(15)},
              {kernel("gemm"), kernel("gemm", "", "overhead"), 2 * text_of(8)},
              {kernel("gemm"), metadata("process_name", "", "rank 0"), text_of(6)},
              {metadata("process_name", "", "rank 0"), metadata("process_name", "", "rank 17"), text_of(7)}};
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CAPTURE(row.more);
    CHECK(paid_for(row.first + "," + row.more) - paid_for(row.first) >= row.least);
  }
}

TEST_CASE("budget: ranks pay for their names once more when they are laid out") {
  // 110 names of almost a MiB pay 660 MiB as they are read, which is allowed, and as much as they are laid out.
  const std::string label((1 << 20) - 100, ' ');
  std::string text = "{\"muonwalk\": {}, \"traceEvents\": [";
  for (int i = 100; i < 210; ++i)
    text += R"({"ph":"M","name":"process_name","pid":)" + std::to_string(i) + R"(,"args":{"name":"rank )" +
            std::to_string(i) + label + "\"}},";
  CHECK(refused(text + R"({"ph":"X","cat":"computation","name":"x","ts":1,"dur":1,"pid":105}]})") ==
        "\"made up\" holds more events and names than are kept in memory: they would take more than 1280 MiB; record "
        "fewer steps");
}

TEST_CASE("budget: each rank pays for what is made of it, however short its name is") {
  std::string text = "{\"muonwalk\": {}, \"traceEvents\": [";
  for (int i = 0; i < 250'000; ++i)
    text += R"({"ph":"M","name":"process_name","pid":)" + std::to_string(i) + R"(,"args":{"name":"rank )" +
            std::to_string(i) + "\"}},";
  CHECK(refused(text + R"({"ph":"X","cat":"computation","name":"x","ts":1,"dur":1,"pid":5}]})").find("1280 MiB") !=
        std::string::npos);
}

TEST_CASE("budget: what is left pays for the last byte, and not for one more; a text may be as long as is said") {
  TraceBudget budget("made up");
  budget.take(kAll - 1);
  budget.take(1);
  CHECK_THROWS_AS(budget.take(1), muonwalk::UsageError);
  const TraceBudget other("made up");
  other.require_flat(256);
  CHECK_THROWS_AS(other.require_flat(257), muonwalk::UsageError);
}
