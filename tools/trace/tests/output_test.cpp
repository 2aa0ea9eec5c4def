#include "tools/trace/output.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/text/text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

Summary summary_of(const std::string& json) {
  TemporaryFolder folder;
  write_text(folder.file("trace.json"), json);
  return summarize({read_trace(folder.file("trace.json"))});
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Lines keep to the width, but for one that names a path, which has no place to break.
void expect_readable(const std::vector<std::string>& lines, const Summary& summary) {
  for (const std::string& line : lines) {
    CAPTURE(line);
    if (line.find(summary.paths.front()) == std::string::npos) CHECK(muonwalk::text_width(line) <= muonwalk::kColumns);
    CHECK((line.empty() || line.back() != ' '));
  }
}

}  // namespace

TEST_CASE("output: text says what was counted, keeps to 100 columns and is the same every time") {
  for (const std::string& trace :
       {rich_trace(), lesson_trace(), TraceWriting().event("cpu_op", "aten::mm", 0, 1).json()}) {
    const Summary summary = summary_of(trace);
    const std::vector<std::string> lines = summary_text(summary);
    expect_readable(lines, summary);
    CHECK(joined(lines) == joined(summary_text(summary)));
    for (const char* part : {"Counted: ", "events\n", "optimizer"})
      CHECK(joined(lines).find(part) != std::string::npos);
  }
  const std::string text = joined(summary_text(summary_of(rich_trace())));
  CHECK(text.find("left out") != std::string::npos);
  CHECK(text.find("cuda_runtime") != std::string::npos);
}

TEST_CASE("output: what is not known is a dash or null, and no zero") {
  const Summary summary = summary_of(TraceWriting().event("cpu_op", "aten::mm", 0, 1).json());
  CHECK(joined(summary_text(summary)).find("–") != std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(summary_json(summary));
  CHECK(json["ranks"][0]["computation_ms"].is_null());
  CHECK(json["ranks"][0]["overlap"].is_null());
  CHECK(json["ranks"][0]["steps"].is_null());
}

TEST_CASE("output: JSON has the figures of the summary, and its notes") {
  const Summary summary = summary_of(lesson_trace());
  const nlohmann::json json = nlohmann::json::parse(summary_json(summary));
  CHECK(json["format"] == "muonwalk-trace-summary");
  CHECK(json["ranks"].size() == 2);
  CHECK(json["ranks"][0]["transfer_and_waiting"]["waiting_ms"] == 0.02);
  CHECK(json["all_ranks"]["collectives"][0]["sent_bytes"] == 32);
  CHECK(json["events"]["communication"] == 2);
}

TEST_CASE("output: JSON is JSON whatever bytes a path has, and says the same of the run") {
  const std::string paths[] = {"plain.json", "µ.json",       "a\"b\\c\n.json", "\xff.json",
                               "half \xc3",  "\xed\xa0\x80", "\xc0\xaf"};
  constexpr std::size_t kOfUnicode = 3;  // the first ones, which come back as they are
  Summary summary = summary_of(lesson_trace());
  nlohmann::json one = nlohmann::json::parse(summary_json(summary));
  summary.paths.assign(std::begin(paths), std::end(paths));
  nlohmann::json all = nlohmann::json::parse(summary_json(summary));
  REQUIRE(all["files"].size() == std::size(paths));
  for (std::size_t p = 0; p < kOfUnicode; ++p) CHECK(all["files"][p] == paths[p]);
  one["files"] = all["files"] = nullptr;
  CHECK(one == all);
}
