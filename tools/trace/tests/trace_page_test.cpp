#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/replay/svg_parts.hpp"
#include "src/text/text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"
#include "tests/replay/well_formed_xml.hpp"
#include "tools/trace/output.hpp"
#include "tools/trace/tests/read_picture.hpp"
#include "tools/trace/tests/trace_writing.hpp"

using namespace muonwalk::testing;
using namespace muonwalk::sim;
using namespace muonwalk;

namespace {

Outcome trace_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), MUONWALK_TRACE_PROGRAM);
  return run_program(arguments, 60);
}

// It ends with 2 and one line on standard error that holds `words`, and prints nothing else.
void expect_refused(const std::vector<std::string>& arguments, const std::string& words) {
  const Outcome outcome = trace_program(arguments);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out == "");
  CHECK(times(outcome.err, "\n") == 1);
  CAPTURE(outcome.err);
  CHECK(outcome.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("--html: what was there stays when the trace can't be read, and nothing is left behind") {
  TemporaryFolder folder;
  const std::string html = folder.file("page.html"), broken = folder.file("broken.json");
  write_text(html, "before");
  write_text(broken, "{\"traceEvents\": [");
  expect_refused({"summary", broken, "--html", html}, broken);
  CHECK(read_text(html) == "before");
  CHECK(folder.names() == std::vector<std::string>{"broken.json", "page.html"});
}

TEST_CASE("--html: a trace that is to be read is not replaced, whatever name it goes by") {
  TemporaryFolder folder;
  const std::string trace = TraceWriting().kernel("gemm", 0, 10).write(folder.file("a.json"));
  const std::string before = read_text(trace);
  expect_refused({"summary", trace, "--html", trace}, "would replace the file that the trace ");
  std::filesystem::create_symlink(trace, folder.file("link.json"));
  expect_refused({"compare", trace, trace, "--html", folder.file("link.json")},
                 "would replace the file that the trace ");
  std::filesystem::create_hard_link(trace, folder.file("hard.json"));
  const std::string other = TraceWriting(1, 2).kernel("gemm", 0, 10).write(folder.file("b.json"));
  for (const char* command : {"summary", "compare"})
    expect_refused({command, other, folder.file("hard.json"), "--html", trace},
                   "would replace the file that the trace ");
  CHECK(read_text(trace) == before);
}

TEST_CASE("--html: Ctrl-C and its like leave nothing, and a sentence says so") {
  TemporaryFolder folder;
  TraceWriting trace;
  for (int i = 0; i < 400000; ++i) trace.kernel("gemm", 2 * i, 1);  // it takes a while to read them
  const std::string path = trace.write(folder.file("a.json"));
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(number);
    Program program({MUONWALK_TRACE_PROGRAM, "summary", path, "--html", folder.file("page")},
                    [] { setenv("MUONWALK_UNNAMED_FILES", "off", 1); });
    for (int tries = 0; folder.names().size() < 2 && tries < 20000; ++tries) usleep(500);  // the page is begun
    kill(program.pid(), number);
    const Outcome outcome = program.wait(60);
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.err == "muonwalk-trace: interrupted; nothing was left behind\n");
    CHECK(folder.names() == std::vector<std::string>{"a.json"});
  }
}

TEST_CASE("what a killed run left unfinished is taken for no trace, neither by name nor in a folder") {
  TemporaryFolder folder;
  TraceWriting().kernel("gemm", 0, 10).write(folder.file(".muonwalk-4711-0.partial"));
  expect_refused({"summary", folder.file(".muonwalk-4711-0.partial")}, "a run that was killed left it unfinished");
  expect_refused({"summary", folder.path()}, "it is a folder without a file");
}

namespace {

std::string source_file(const std::string& path) { return read_text(MUONWALK_SOURCE_DIR "/" + path); }

nlohmann::json data_of(const std::string& page) {
  const std::string open = "id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("embed_texts: the program holds the files byte for byte") {
  CHECK(page_texts::echarts_js == source_file("third_party/echarts/echarts.min.js"));
  CHECK(page_texts::echarts_notice == source_file("third_party/echarts/NOTICE"));
  CHECK(page_texts::page_html == source_file("tools/trace/page/page.html"));
  CHECK(page_texts::page_css == source_file("tools/trace/page/page.css"));
  CHECK(page_texts::tooltip_js == source_file("tools/trace/page/tooltip.js"));
  CHECK(page_texts::trace_css == source_file("tools/trace/page/trace.css"));
  CHECK(page_texts::page_js == source_file("tools/trace/page/page.js"));
  CHECK(page_texts::bars_js == source_file("tools/trace/page/bars.js"));
  CHECK(page_texts::timeline_js == source_file("tools/trace/page/timeline.js"));
}

TEST_CASE(
    "libraries: ECharts and all that reads traces are in the analyser's library, and not in the one of every rank") {
  const std::string every_rank = read_text(MUONWALK_LIBRARY), analyser = read_text(MUONWALK_ANALYSER_LIBRARY);
  // Parts of symbols, as the compiler mangles them: names of types and of the namespace of embedded texts.
  for (const char* part :
       {"echarts", "10page_texts", "9TraceFileE", "11RankSummary", "8Timeline", "14PublishedClaim"}) {
    CAPTURE(part);
    CHECK(every_rank.find(part) == std::string::npos);
    CHECK(analyser.find(part) != std::string::npos);
  }
}

TEST_CASE("trace_page: names can neither end a script nor fill a place of the page, and stay what they are") {
  TraceWriting trace;
  trace.kernel("</script><script>alert(1)</script>", 0, 10).kernel("{{data}} \\u2028 <!--", 20, 10);
  const std::string page = trace_page(picture_of({trace.json()}));
  CHECK(times(page, "</script>") == 3);  // the library, the data, our own
  CHECK(page.find("alert(1)</script>") == std::string::npos);
  const auto texts = data_of(page)["texts"];
  CHECK(texts[0] == "</script><script>alert(1)</script>");
  CHECK(texts[1] == "{{data}} \\u{2028} <!--");
}

TEST_CASE("trace_page: what a file is called, or says of itself, is not markup in any list or table") {
  TemporaryFolder folder;
  const std::string path = folder.file("<i>name<!--.json");
  TraceWriting(0, 2)
      .kernel("<i>kernel", 0, 10)
      .event("<i>category", "x", 0, 5)
      .collective("allreduce", 10, 5, 8, "<i>type", "<i>ranks", 2)
      .write(path);
  const std::vector<TraceFile> files = read_traces({path});
  TracePicture picture = {{picture_run(files, summarize(files))}, {"<i>warning"}};
  picture.runs[0].summary.notes.push_back("<i>note");
  const std::string page = trace_page(picture);
  CHECK(times(page, "<i>") == times(page_texts::echarts_js, "<i>"));
  for (const char* shown : {"&lt;i&gt;name&lt;!--", "&lt;i&gt;category", "&lt;i&gt;type", "&lt;i&gt;ranks",
                            "&lt;i&gt;warning", "&lt;i&gt;note"}) {
    CAPTURE(shown);
    CHECK(page.find(shown) != std::string::npos);
  }
}

TEST_CASE("trace_page: it loads nothing") {
  const std::string page = trace_page(picture_of({rich_trace()}));
  for (const char* loading : {"src=\"", "url(", "@import", "<iframe", "<object", "<embed"}) {
    CAPTURE(loading);
    CHECK(times(page, loading) == times(page_texts::echarts_js, loading));
  }
  CHECK(times(page, "<link") == 1);
  CHECK(page.find("<link rel=\"icon\" href=\"data:,\">") != std::string::npos);
}

TEST_CASE("trace_page: bars and slices hold the summary's figures, and the words are those that are printed") {
  const TracePicture picture = picture_of({lesson_trace()});
  const std::string page = trace_page(picture);
  const auto data = data_of(page);
  REQUIRE(data["bars"].size() == 2);
  for (std::size_t r = 0; r < 2; ++r) {
    const RankSummary& rank = picture.runs[0].summary.ranks[r];
    CHECK(data["bars"][r]["span_ns"] == rank.span_ns);
    CHECK(data["bars"][r]["parts_ns"] == nlohmann::json(span_parts(rank)));
  }
  CHECK(data["slices"].size() == 8);
  CHECK(data["span_ns"] == 100'000);
  for (const std::string& line : summary_text(picture.runs[0].summary))
    CHECK_MESSAGE(page.find(xml_text(line)) != std::string::npos, line);
}

TEST_CASE("trace_page: a large trace is drawn with as many slices as were allowed, and the page says so") {
  TraceWriting trace;
  for (int i = 0; i < 40'000; ++i) trace.kernel("k" + std::to_string(i % 7), i, 0.5 + 0.1 * (i % 3), 7 + i % 2);
  const TracePicture picture = picture_of({trace.json()});
  const std::string page = trace_page(picture, 3000);
  const auto data = data_of(page);
  CHECK(data["slices"].size() <= 3000);
  CHECK(data["slices"].size() > 1000);
  std::int64_t events = 0;
  for (const auto& slice : data["slices"]) events += slice[4].get<std::int64_t>();
  CHECK(events == 40'000);
  CHECK(page.find("40,000 events, drawn as ") != std::string::npos);
  CHECK(trace_page(picture, 100'000).find("40,000 events, each drawn.") != std::string::npos);
}

TEST_CASE("trace_page: of two runs each slice has its own run's name, type and group") {
  TracePicture picture = picture_of(
      {TraceWriting(0, 2).kernel("a", 0, 10).collective("allreduce", 10, 5, 8, "Float", "[0, 1]", 2).json()});
  picture.runs.push_back(
      picture_of(
          {TraceWriting(2, 4).collective("allreduce", 0, 5, 8, "BFloat16", "[2, 3]", 2).kernel("b", 5, 20).json()})
          .runs[0]);
  const auto data = data_of(trace_page(picture));
  std::vector<std::string> told;
  for (const auto& slice : data["slices"]) {
    const auto text = [&](int entry) {
      return slice[entry] < 0 ? "–" : data["texts"][slice[entry].get<std::size_t>()].get<std::string>();
    };
    const std::string line = data["lines"][slice[0].get<std::size_t>()]["lane"];
    told.push_back(line + ": " + text(5).substr(0, 20) + ", " + text(6) + ", " + text(7));
  }
  CHECK(told == std::vector<std::string>{"A · rank 0, computation: a, –, –",
                                         "A · rank 0, communication: ncclDevKernel_AllRed, float32, [0, 1]",
                                         "B · rank 2, computation: b, –, –",
                                         "B · rank 2, communication: ncclDevKernel_AllRed, bfloat16, [2, 3]"});
}

TEST_CASE("trace_page: a run in which nothing could be timed has a page, too") {
  const std::string page = trace_page(picture_of({TraceWriting().event("user_annotation", "range", 0, 5).json()}));
  CHECK(page.find("Counted: nothing: there are no kernels") != std::string::npos);
  CHECK(data_of(page)["bars"].empty());
}
