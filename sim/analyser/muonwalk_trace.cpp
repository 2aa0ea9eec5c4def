// muonwalk-trace: reads traces of distributed training and says what was counted, next to what it means.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sim/analyser/output.hpp"
#include "sim/analyser/pictures/picture.hpp"
#include "sim/analyser/reader.hpp"
#include "sim/terminal/reading_program.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::sim;

constexpr const char* kName = "muonwalk-trace";

// What was asked for on the command line.
struct Request {
  OutputFormat format;
  std::string html, svg;                 // of summary and compare; "": none
  std::vector<std::string> files;        // of summary
  std::string a, b;                      // of compare
  std::string muon, adamw;               // of published
  std::vector<std::string> async_files;  // of published --async: Muon's and AdamW's
};

// Pictures on their way into their files: whole or not at all.
class PictureFiles {
 public:
  // Opens both, so that a path that can't be written is known before traces are read. Throws UsageError, one sentence,
  // for such a path, for one file twice, and for one that is among the traces, `inputs`.
  PictureFiles(const Request& request, const std::vector<std::string>& inputs) {
    std::vector<NamedPath> paths = {{"--html", request.html, PathUse::writes, "", ""},
                                    {"--svg", request.svg, PathUse::writes, "", ""}};
    for (const std::string& input : inputs) paths.push_back({"the trace", input, PathUse::reads, "", ""});
    require_distinct_files(paths);
    if (!request.html.empty()) html_ = std::make_unique<FileBeside>(request.html);
    if (!request.svg.empty()) svg_ = std::make_unique<FileBeside>(request.svg);
  }

  bool any() const { return html_ != nullptr || svg_ != nullptr; }

  // Draws the picture into each file that was asked for. Throws UsageError where one can't be written.
  void write(const TracePicture& picture) {
    if (html_ != nullptr) write_whole(*html_, trace_page(picture));
    if (svg_ != nullptr) write_whole(*svg_, trace_svg(picture));
  }

 private:
  static void write_whole(FileBeside& file, const std::string& text) {
    file.write(text.data(), text.size());
    file.commit();
  }

  std::unique_ptr<FileBeside> html_, svg_;  // nullptr: not asked for
};

int print_summary(const Request& request) {
  std::vector<std::string> paths;
  for (const std::string& path : request.files)
    for (const std::string& file : trace_paths(path)) paths.push_back(file);
  PictureFiles pictures(request, paths);
  const std::vector<TraceFile> files = read_traces(paths);
  const Summary summary = summarize(files);
  if (pictures.any()) pictures.write({{picture_run(files, summary)}, {}});
  print_as(
      request.format, [&] { return summary_json(summary); }, [&] { return summary_csv(summary); },
      [&] { return summary_text(summary); });
  return 0;
}

int print_comparison(const Request& request) {
  const std::vector<std::string> paths_a = trace_paths(request.a), paths_b = trace_paths(request.b);
  std::vector<std::string> paths = paths_a;
  paths.insert(paths.end(), paths_b.begin(), paths_b.end());
  PictureFiles pictures(request, paths);
  const std::vector<TraceFile> a = read_traces(paths_a), b = read_traces(paths_b);
  const TraceComparison comparison = compare(summarize(a), summarize(b));
  if (pictures.any())
    pictures.write({{picture_run(a, comparison.a), picture_run(b, comparison.b)}, comparison.warnings});
  print_as(
      request.format, [&] { return comparison_json(comparison); }, [&] { return comparison_csv(comparison); },
      [&] { return comparison_text(comparison); });
  return 0;
}

// Exits with 1 when a published figure does not come out, as a lesson does whose check fails.
int print_published(const Request& request) {
  std::vector<std::string> paths = {request.muon, request.adamw};
  paths.insert(paths.end(), request.async_files.begin(), request.async_files.end());
  std::vector<TraceFile> traces;
  for (const std::string& path : paths) traces.push_back(read_trace(path));
  const std::vector<PublishedClaim> claims = published_claims(traces);
  print_as(
      request.format, [&] { return published_json(claims, paths); }, [&] { return published_csv(claims); },
      [&] { return published_text(claims, paths); });
  const auto [figures, found] = found_again(claims);
  return found == figures ? 0 : 1;
}

void add_pictures(CLI::App& command, Request& request) {
  command.add_option("--html", request.html, "also write a page: timeline and bars, to zoom in and to point at")
      ->type_name("FILE");
  command.add_option("--svg", request.svg, "also write a static picture of the same")->type_name("FILE");
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
  for (CLI::App* command : {summary, comparison, published}) add_formats(*command, request.format);
  for (CLI::App* command : {summary, comparison}) add_pictures(*command, request);

  if (!parse_command_line(app, argc, argv)) return 0;
  return summary->parsed()      ? print_summary(request)
         : comparison->parsed() ? print_comparison(request)
                                : print_published(request);
}

}  // namespace

int main(int argc, char** argv) {
  return run_reading_program(kName, "try one file at a time, or record fewer steps", [&] { return run(argc, argv); });
}
