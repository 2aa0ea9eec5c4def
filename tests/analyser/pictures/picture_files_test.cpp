#include <doctest/doctest.h>

#include <filesystem>

#include "tests/analyser/pictures/read_picture.hpp"
#include "tests/analyser/trace_writing.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

using namespace muonwalk::testing;

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
    expect_refused({"summary", folder.file("missing.json"), option, ""}, "needs the name of a file");
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
  expect_refused({"summary", trace, "--html", folder.file("x"), "--svg", folder.file("x")}, "can't both be written");
  expect_refused({"summary", trace, "--html", trace}, "would replace a trace");
  std::filesystem::create_symlink(trace, folder.file("link.json"));
  expect_refused({"compare", trace, trace, "--svg", folder.file("link.json")}, "would replace a trace");
  CHECK(read_text(trace) == before);
}
