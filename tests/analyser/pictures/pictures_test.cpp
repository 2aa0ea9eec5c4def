#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/pictures/page_texts.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"
#include "tests/analyser/pictures/read_picture.hpp"
#include "tests/analyser/trace_writing.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/pictures/well_formed_xml.hpp"
#include "tests/sim/run_program.hpp"

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

TEST_CASE("--html and --svg: both are written beside what is printed, for summary and for compare") {
  TemporaryFolder folder;
  const std::string a = TraceWriting().kernel("gemm", 0, 10).write(folder.file("a.json"));
  const std::string b = TraceWriting().kernel("gemm", 0, 20).write(folder.file("b.json"));
  const std::string html = folder.file("page.html"), svg = folder.file("picture.svg");
  const std::string printed = trace_program({"summary", a}).out;
  const Outcome summary = trace_program({"summary", a, "--html", html, "--svg", svg});
  CHECK(summary.exit_code == 0);
  CHECK(summary.out == printed);
  CHECK(read_text(html).find("<h1>Trace of a.json</h1>") != std::string::npos);
  CHECK(read_text(svg).find("</svg>") != std::string::npos);
  CHECK(trace_program({"compare", a, b, "--html", html, "--svg", svg}).exit_code == 0);
  CHECK(read_text(html).find("<h1>A: a.json · B: b.json</h1>") != std::string::npos);
  CHECK(read_text(html).find("id=\"warnings\"") != std::string::npos);
  CHECK(read_text(svg).find("A: a.json · B: b.json") != std::string::npos);
}

TEST_CASE("--html and --svg: a path that can't be written is refused before traces are read") {
  TemporaryFolder folder;
  const std::string nowhere = folder.file("no_folder/page.html");
  for (const char* option : {"--html", "--svg"}) {
    expect_refused({"summary", folder.file("missing.json"), option, nowhere}, nowhere);
    expect_refused({"compare", folder.file("missing.json"), folder.file("missing.json"), option, nowhere}, nowhere);
    expect_refused({"summary", folder.file("missing.json"), option, ""}, "is empty");
  }
}

TEST_CASE("--html and --svg: what was there stays when the trace can't be read, and nothing is left behind") {
  TemporaryFolder folder;
  const std::string html = folder.file("page.html"), broken = folder.file("broken.json");
  write_text(html, "before");
  write_text(broken, "{\"traceEvents\": [");
  expect_refused({"summary", broken, "--html", html, "--svg", folder.file("new.svg")}, broken);
  CHECK(read_text(html) == "before");
  CHECK(folder.names() == std::vector<std::string>{"broken.json", "page.html"});
}

TEST_CASE("--html and --svg: neither the same file twice, nor a trace that is to be read") {
  TemporaryFolder folder;
  const std::string trace = TraceWriting().kernel("gemm", 0, 10).write(folder.file("a.json"));
  const std::string before = read_text(trace);
  expect_refused({"summary", trace, "--html", folder.file("x"), "--svg", folder.file("x")}, "are the same file");
  expect_refused({"summary", trace, "--html", trace}, "would replace the file that the trace ");
  std::filesystem::create_symlink(trace, folder.file("link.json"));
  expect_refused({"compare", trace, trace, "--svg", folder.file("link.json")},
                 "would replace the file that the trace ");
  std::filesystem::create_hard_link(trace, folder.file("hard.json"));
  expect_refused({"summary", folder.file("hard.json"), "--html", trace}, "would replace the file that the trace ");
  expect_refused({"summary", trace, "--html", folder.file("x"), "--svg", folder.path() + "/./x"}, "are the same file");
  CHECK(read_text(trace) == before);
}

TEST_CASE("--html and --svg: Ctrl-C and its like leave nothing, and a sentence says so") {
  TemporaryFolder folder;
  TraceWriting trace;
  for (int i = 0; i < 400000; ++i) trace.kernel("gemm", 2 * i, 1);  // it takes a while to read them
  const std::string path = trace.write(folder.file("a.json"));
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(number);
    Program program({MUONWALK_TRACE_PROGRAM, "summary", path, "--html", folder.file("page"), "--svg", folder.file("x")},
                    [] { setenv("MUONWALK_UNNAMED_FILES", "off", 1); });
    for (int tries = 0; folder.names().size() < 3 && tries < 20000; ++tries) usleep(500);  // both files are begun
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
  CHECK(page_texts::page_html == source_file("sim/analyser/pictures/page/page.html"));
  CHECK(page_texts::page_css == source_file("sim/pictures/page/page.css"));
  CHECK(page_texts::tooltip_js == source_file("sim/pictures/page/tooltip.js"));
  CHECK(page_texts::trace_css == source_file("sim/analyser/pictures/page/trace.css"));
  CHECK(page_texts::page_js == source_file("sim/analyser/pictures/page/page.js"));
  CHECK(page_texts::bars_js == source_file("sim/analyser/pictures/page/bars.js"));
  CHECK(page_texts::timeline_js == source_file("sim/analyser/pictures/page/timeline.js"));
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
  for (const char* shown : {"&lt;i&gt;name&lt;!--", "&lt;i&gt;kernel", "&lt;i&gt;category", "&lt;i&gt;type",
                            "&lt;i&gt;ranks", "&lt;i&gt;warning", "&lt;i&gt;note"}) {
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

TEST_CASE("trace_page: bars, slices and tables hold the summary's figures") {
  const TracePicture picture = picture_of({lesson_trace()});
  const std::string page = trace_page(picture);
  const auto data = data_of(page);
  REQUIRE(data["bars"].size() == 2);
  for (std::size_t r = 0; r < 2; ++r) {
    const RankSummary& rank = picture.runs[0].summary.ranks[r];
    CHECK(data["bars"][r]["span_ns"] == rank.span_ns);
    CHECK(data["bars"][r]["parts_ns"] == nlohmann::json(span_parts(rank)));
    for (const std::int64_t part : span_parts(rank))
      CHECK(page.find("<td>" + span_part_figures(part, rank.span_ns) + "</td>") != std::string::npos);
  }
  CHECK(data["slices"].size() == 8);
  CHECK(data["span_ns"] == 100'000);
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

TEST_CASE("trace_page: of a slice that stands for several events, what they cover is less than what it takes") {
  TraceWriting trace;
  for (int i = 0; i < 100; ++i) trace.kernel("k", 10 * i, 4);
  std::int64_t covered = 0;
  const auto data = data_of(trace_page(picture_of({trace.json()}), 20));
  CHECK(data["slices"].size() <= 20);
  for (const auto& slice : data["slices"]) {
    const std::int64_t begin = slice[1], takes = slice[2], covers = slice[3], events = slice[4];
    CHECK(begin % 10'000 == 0);
    CHECK(covers == 4'000 * events);
    CHECK(takes == 10'000 * events - 6'000);
    covered += covers;
  }
  CHECK(covered == 400'000);
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
  CHECK(page.find("nothing that could be timed") != std::string::npos);
  CHECK(data_of(page)["bars"].empty());
}

namespace {

// The widths of the rectangles of a class, in the order in which they are drawn.
std::vector<double> widths_of(const std::string& svg, const std::string& style_class) {
  std::vector<double> widths;
  const std::string class_text = "class=\"" + style_class + "\"";
  for (std::size_t at = svg.find("<rect "); at != std::string::npos; at = svg.find("<rect ", at + 1)) {
    const std::string tag = svg.substr(at, svg.find('>', at) - at);
    if (tag.find(class_text) == std::string::npos) continue;
    widths.push_back(std::stod(tag.substr(tag.find("width=\"") + 7)));
  }
  return widths;
}

}  // namespace

TEST_CASE("trace_svg: well-formed, whatever names hold") {
  TraceWriting nasty;
  nasty.kernel("</svg><script>alert(1)</script> & \\\"x\\\" \\u0001", 0, 500).kernel("×", 600, 100);
  for (const std::string& json : {lesson_trace(), rich_trace(), nasty.json()}) {
    const std::string svg = trace_svg(picture_of({json}));
    CHECK(XmlReader(svg).complaint() == "");
    CHECK(svg.find("<script") == std::string::npos);
    CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
    CHECK(svg.find("NaN") == std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
  }
}

TEST_CASE("trace_svg: bars are as long as the summary says, and their figures are the summary's") {
  const TracePicture picture = picture_of(
      {TraceWriting(0, 2).kernel("gemm", 0, 500).collective("allreduce", 400, 300, 8, "Float", "[0, 1]", 2).json(),
       TraceWriting(1, 2).kernel("gemm", 0, 100).event("gpu_memcpy", "Memcpy DtoD", 150, 50).json()});
  const std::string svg = trace_svg(picture);
  const Summary& summary = picture.runs[0].summary;
  std::int64_t longest = 0;
  for (const RankSummary& rank : summary.ranks) longest = std::max(longest, rank.span_ns);
  for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
    const RankSummary& rank = summary.ranks[r];
    const auto parts = span_parts(rank);
    std::string described = fmt::format("{}: span {} ms", rank.label, ms_text(rank.span_ns));
    for (int part = 0; part < kSpanParts; ++part) {
      const std::int64_t ns = parts[static_cast<std::size_t>(part)];
      // The first of each class is its swatch above the bars.
      const double width = widths_of(svg, fmt::format("mw-part{}", part)).at(1 + r);
      CHECK(width == doctest::Approx(912.0 * static_cast<double>(ns) / static_cast<double>(longest)).epsilon(0.001));
      const std::string figures = span_part_figures(ns, rank.span_ns);
      CHECK(svg.find(">" + figures + "<") != std::string::npos);
      described += fmt::format(", {} {}", span_part_text(static_cast<SpanPart>(part)), figures);
    }
    CHECK(svg.find(described + ".") != std::string::npos);
  }
}

TEST_CASE(
    "trace_svg: a lane's slices lie where their events were; what is narrower than half a unit is drawn together") {
  TraceWriting trace;
  trace.kernel("long", 0, 1000);
  for (int i = 0; i < 5000; ++i) trace.kernel("tiny", 1000 + 0.2 * i, 0.1);
  const std::string svg = trace_svg(picture_of({trace.json()}));
  const std::vector<double> widths = widths_of(svg, fmt::format("mw-lane{}", static_cast<int>(LaneKind::computation)));
  CHECK(widths.at(0) == doctest::Approx(398 - 0.2).epsilon(0.001));  // half of the span
  CHECK(widths.size() > 400);
  CHECK(widths.size() < 2000);
  CHECK(svg.find(fmt::format("5,001 events, drawn as {}", fmt::format("{}{}", widths.size() >= 1000 ? "1," : "",
                                                                      widths.size() % 1000))) != std::string::npos);
}

TEST_CASE("trace_svg: two runs stand below each other on one time scale") {
  TracePicture picture = picture_of({TraceWriting().kernel("a", 0, 1000).json()});
  picture.runs.push_back(picture_of({TraceWriting().kernel("b", 5000, 500).json()}).runs[0]);
  const std::string svg = trace_svg(picture);
  CHECK(XmlReader(svg).complaint() == "");
  const std::vector<double> widths = widths_of(svg, "mw-lane0");
  REQUIRE(widths.size() == 2);
  CHECK(widths[0] / widths[1] == doctest::Approx(2).epsilon(0.001));
  CHECK(svg.find(">A · rank 0<") != std::string::npos);
  CHECK(svg.find(">B · rank 0<") != std::string::npos);
}
