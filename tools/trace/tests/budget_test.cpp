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

TEST_CASE("budget: an event, each new text, a call and each new kind of call have their price") {
  CHECK(left_in(TraceBudget("made up")) == kAll);
  CHECK(paid_for("") == 0);
  // "gemm", "kernel", and the number of the process.
  const std::int64_t gemm = text_of(4) + text_of(6) + text_of(1) + kEvent;
  CHECK(paid_for(kernel("gemm")) == gemm);
  CHECK(paid_for(kernel("gemm") + "," + kernel("gemm")) == gemm + kEvent);
  CHECK(paid_for(kernel("gemm") + "," + kernel("other")) == gemm + kEvent + text_of(5));
  // A call, with its type and group as texts, and their kind in words; the second one is of the same kind.
  const std::string args =
      R"("Collective name": "allreduce", "dtype": "Float", "Group size": 2, "Process Group Name": "dp",
      "Process Group Ranks": "[0, 1]")";
  const std::int64_t call = sizeof(CollectiveCall);
  const std::int64_t kind = text_of(7 + 6 + 2);  // float32, [0, 1], dp
  CHECK(paid_for(kernel("gemm", args)) == gemm + text_of(7) + text_of(2) + text_of(6) + call + kind);
  CHECK(paid_for(kernel("gemm", args) + "," + kernel("gemm", args)) ==
        gemm + text_of(7) + text_of(2) + text_of(6) + 2 * call + kind + kEvent);
  CHECK(paid_for(kernel("gemm", args) + "," + kernel("gemm", args + R"(, "Group size": 3)")) ==
        gemm + text_of(7) + text_of(2) + text_of(6) + 2 * call + 2 * kind + kEvent);
  // What is in no figure: its name and its category, and once more its category, with the sentence on it.
  CHECK(paid_for(kernel("gemm", "", "overhead")) == text_of(4) + text_of(8) + text_of(8));
  CHECK(paid_for(kernel("gemm", "", "overhead") + "," + kernel("gemm", "", "overhead")) ==
        text_of(4) + text_of(8) + text_of(8));
}

TEST_CASE("budget: names of processes and of matrices have their price each time; those of threads are not kept") {
  const std::int64_t process = text_of(1);  // "0"
  CHECK(paid_for(metadata("process_name", "", "rank 0")) == process + text_of(6));
  CHECK(paid_for(metadata("process_name", "", "rank 0") + "," + metadata("process_name", "", "rank 17")) ==
        process + text_of(6) + text_of(7));
  CHECK(paid_for(metadata("thread_name", "321", "some")) == 0);
  CHECK(paid_for("", R"(, "muonwalk": {"parameters": [{"name": "weight", "rows": 2, "cols": 3}]})") == text_of(6));
}

TEST_CASE("budget: of NCCL's traces, calls and their communicator have their price") {
  const std::string call =
      R"({"name": "Send", "cat": "P2P", "ph": "b", "id": 1, "ts": 1, "pid": 0, "tid": 77, "args": {"CommHash": 1234567,
          "Rank": 0, "Count": 3, "Datatype": "ncclInt8"}},
         {"name": "Send", "cat": "P2P", "ph": "e", "id": 1, "ts": 3})";
  const std::int64_t one = text_of(4) + text_of(3) + text_of(1) + kEvent +                  // Send, P2P, 0
                           text_of(7) + text_of(4) + text_of(20) +                          // 1234567, int8, its group
                           static_cast<std::int64_t>(sizeof(CollectiveCall)) + text_of(4);  // int8
  CHECK(paid_for(call) == one);
  CHECK(paid_for(call + "," + call) == one + kEvent + static_cast<std::int64_t>(sizeof(CollectiveCall)));
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
