// muonwalk-trace: reads traces of distributed training and says what was counted, next to what it means.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/terminal/reading_program.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"
#include "src/text/text.hpp"
#include "tools/trace/output.hpp"
#include "tools/trace/reader.hpp"
#include "tools/trace/trace_page.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::sim;

constexpr const char* kName = "muonwalk-trace";

// What was asked for on the command line.
struct Request {
  bool json = false;
  std::string html;                      // of summary and compare; "": none
  std::vector<std::string> files;        // of summary
  std::string a, b;                      // of compare
  std::string muon, adamw;               // of published
  std::vector<std::string> async_files;  // of published --async: Muon's and AdamW's
};

// The file of --html, opened before traces are read, so that a path that can't be written is known in time; nullptr
// where there is none. Throws UsageError, one sentence, for such a path, and for one that is among the traces,
// `inputs`.
std::unique_ptr<FileBeside> open_page(const Request& request, const std::vector<std::string>& inputs) {
  std::vector<NamedPath> paths = {{"--html", request.html, PathUse::writes, "", ""}};
  for (const std::string& input : inputs) paths.push_back({"the trace", input, PathUse::reads, "", ""});
  require_distinct_files(paths);
  return request.html.empty() ? nullptr : std::make_unique<FileBeside>(request.html);
}

// Writes the page, whole or not at all, where one was asked for.
void write_page(const std::unique_ptr<FileBeside>& file, const std::function<TracePicture()>& picture) {
  if (file == nullptr) return;
  const std::string page = trace_page(picture());
  file->write(page.data(), page.size());
  file->commit();
}

int print_summary(const Request& request) {
  std::vector<std::string> paths;
  for (const std::string& path : request.files) append(paths, trace_paths(path));
  const auto page = open_page(request, paths);
  const std::vector<TraceFile> files = read_traces(paths);
  const Summary summary = summarize(files);
  write_page(page, [&] { return TracePicture{{picture_run(files, summary)}, {}}; });
  print_as(
      request.json, [&] { return summary_json(summary); }, [&] { return summary_text(summary); });
  return 0;
}

int print_comparison(const Request& request) {
  const std::vector<std::string> paths_a = trace_paths(request.a), paths_b = trace_paths(request.b);
  std::vector<std::string> paths = paths_a;
  append(paths, paths_b);
  const auto page = open_page(request, paths);
  const std::vector<TraceFile> a = read_traces(paths_a), b = read_traces(paths_b);
  const TraceComparison comparison = compare(summarize(a), summarize(b));
  write_page(page, [&] {
    return TracePicture{{picture_run(a, comparison.a), picture_run(b, comparison.b)}, comparison.warnings};
  });
  print_as(
      request.json, [&] { return comparison_json(comparison); }, [&] { return comparison_text(comparison); });
  return 0;
}

// Exits with 1 when a published figure does not come out, as a lesson does whose check fails.
int print_published(const Request& request) {
  std::vector<std::string> paths = {request.muon, request.adamw};
  append(paths, request.async_files);
  std::vector<TraceFile> traces;
  for (const std::string& path : paths) traces.push_back(read_trace(path));
  const std::vector<PublishedClaim> claims = published_claims(traces);
  print_as(false, {}, [&] { return published_text(claims, paths); });
  const auto [figures, found] = found_again(claims);
  return found == figures ? 0 : 1;
}

int run(int argc, char** argv) {
  Request request;
  CLI::App app{"Reads traces of torch.profiler (GPU with NCCL, CPU with Gloo) and of lessons, plain or gzip.", kName};
  app.require_subcommand(1);

  CLI::App* summary =
      app.add_subcommand("summary", "what the ranks of one run did: time, collectives, waiting, optimizer");
  summary->add_option("FILE", request.files, "a trace per rank, one with all ranks, or a folder with a trace per rank")
      ->required();
  CLI::App* comparison = app.add_subcommand("compare", "two runs side by side, and why they can't simply be compared");
  comparison->add_option("A", request.a, "the trace of one run, or a folder with a trace per rank")->required();
  comparison->add_option("B", request.b, "the same of the other")->required();
  CLI::App* published = app.add_subcommand("published", "published figures, counted again, next to corrected ones");
  published->add_option("FILE_MUON", request.muon, "the published trace of Muon, dp 2 × tp 2")->required();
  published->add_option("FILE_ADAMW", request.adamw, "the published trace of AdamW, dp 4")->required();
  published->add_option("--async", request.async_files, "the traces with async_op=True: Muon's, then AdamW's")
      ->expected(2);
  for (CLI::App* command : {summary, comparison}) {
    command->add_flag("--json", request.json, "print JSON");
    command->add_option("--html", request.html, "also write a page: timeline and bars, to zoom in and to point at")
        ->type_name("FILE");
  }

  if (!parse_command_line(app, argc, argv)) return 0;
  return summary->parsed()      ? print_summary(request)
         : comparison->parsed() ? print_comparison(request)
                                : print_published(request);
}

}  // namespace

int main(int argc, char** argv) {
  return run_reading_program(kName, "try one file at a time, or record fewer steps", [&] { return run(argc, argv); });
}
