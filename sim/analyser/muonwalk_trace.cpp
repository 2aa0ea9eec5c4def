// muonwalk-trace: reads traces of distributed training and says what was counted, next to what it means.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <new>
#include <string>
#include <vector>

#include "sim/analyser/pictures/picture_files.hpp"
#include "sim/analyser/published_figures.hpp"
#include "sim/analyser/trace_comparison.hpp"
#include "sim/analyser/trace_csv.hpp"
#include "sim/analyser/trace_json.hpp"
#include "sim/analyser/trace_reader.hpp"
#include "sim/analyser/trace_summary.hpp"
#include "sim/analyser/trace_text.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::sim;

constexpr const char* kName = "muonwalk-trace";

// What was asked for on the command line.
struct Wish {
  bool json = false;
  bool csv = false;
  PicturePaths pictures;                 // of summary and compare
  std::vector<std::string> files;        // of summary
  std::string a, b;                      // of compare
  std::string muon, adamw;               // of published
  std::vector<std::string> async_files;  // of published --async: Muon's and AdamW's
};

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) print_line(line);
}

// JSON and CSV end with a newline of their own.
void print_document(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  print_line(text);
}

int print_summary(const Wish& wish) {
  std::vector<std::string> paths;
  for (const std::string& path : wish.files)
    for (const std::string& file : trace_paths(path)) paths.push_back(file);
  PictureFiles pictures(wish.pictures, paths);
  const std::vector<TraceFile> files = read_traces(paths);
  const Summary summary = summarize(files);
  if (wish.pictures.any()) pictures.write({{picture_run(files, summary)}, {}});
  if (wish.json)
    print_document(summary_json(summary));
  else if (wish.csv)
    print_document(summary_csv(summary));
  else
    print_lines(summary_text(summary));
  return 0;
}

int print_comparison(const Wish& wish) {
  const std::vector<std::string> paths_a = trace_paths(wish.a), paths_b = trace_paths(wish.b);
  std::vector<std::string> paths = paths_a;
  paths.insert(paths.end(), paths_b.begin(), paths_b.end());
  PictureFiles pictures(wish.pictures, paths);
  const std::vector<TraceFile> a = read_traces(paths_a), b = read_traces(paths_b);
  const TraceComparison comparison = compare(summarize(a), summarize(b));
  if (wish.pictures.any())
    pictures.write({{picture_run(a, comparison.a), picture_run(b, comparison.b)}, comparison.warnings});
  if (wish.json)
    print_document(comparison_json(comparison));
  else if (wish.csv)
    print_document(comparison_csv(comparison));
  else
    print_lines(comparison_text(comparison));
  return 0;
}

// Exits with 1 when a published figure does not come out, as a lesson does whose check fails.
int print_published(const Wish& wish) {
  PublishedTraces traces;
  traces.muon = read_trace(wish.muon);
  traces.adamw = read_trace(wish.adamw);
  std::vector<std::string> paths = {wish.muon, wish.adamw};
  if (!wish.async_files.empty()) {
    traces.has_async = true;
    traces.muon_async = read_trace(wish.async_files[0]);
    traces.adamw_async = read_trace(wish.async_files[1]);
    paths.insert(paths.end(), wish.async_files.begin(), wish.async_files.end());
  }
  const std::vector<PublishedClaim> claims = published_claims(traces);
  if (wish.json)
    print_document(published_json(claims, paths));
  else if (wish.csv)
    print_document(published_csv(claims));
  else
    print_lines(published_text(claims, paths));
  const auto [figures, found] = found_again(claims);
  return found == figures ? 0 : 1;
}

void add_formats(CLI::App& command, Wish& wish) {
  auto* json = command.add_flag("--json", wish.json, "print JSON");
  command.add_flag("--csv", wish.csv, "print CSV: the figures alone")->excludes(json);
}

void add_pictures(CLI::App& command, Wish& wish) {
  const auto not_empty = [](const std::string& path) {
    return path.empty() ? std::string("needs the name of a file") : std::string();
  };
  command.add_option("--html", wish.pictures.html, "also write a page: timeline and bars, to zoom in and to point at")
      ->type_name("FILE")
      ->check(not_empty);
  command.add_option("--svg", wish.pictures.svg, "also write a static picture of the same")
      ->type_name("FILE")
      ->check(not_empty);
}

std::string one_sentence(std::string reason) {
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == '.')) reason.pop_back();
  return reason;
}

int run(int argc, char** argv) {
  Wish wish;
  CLI::App app{"Reads traces of torch.profiler (GPU with NCCL, CPU with Gloo) and of lessons, plain or gzip.", kName};
  app.require_subcommand(1);

  CLI::App* summary =
      app.add_subcommand("summary", "what the ranks of one run did: time, collectives, waiting, optimizer");
  summary->add_option("FILE", wish.files, "a trace a rank, one with all ranks, or a folder with a trace a rank")
      ->required();
  CLI::App* comparison = app.add_subcommand("compare", "two runs side by side, and why they can't simply be compared");
  comparison->add_option("A", wish.a, "the trace of one run, or a folder with a trace a rank")->required();
  comparison->add_option("B", wish.b, "the same of the other")->required();
  CLI::App* published = app.add_subcommand("published", "published figures, counted again, next to corrected ones");
  published->add_option("FILE_MUON", wish.muon, "the published trace of Muon, dp 2 × tp 2")->required();
  published->add_option("FILE_ADAMW", wish.adamw, "the published trace of AdamW, dp 4")->required();
  published->add_option("--async", wish.async_files, "the traces with async_op=True: Muon's, then AdamW's")
      ->expected(2);
  for (CLI::App* command : {summary, comparison, published}) add_formats(*command, wish);
  for (CLI::App* command : {summary, comparison}) add_pictures(*command, wish);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    print_line(one_sentence((chosen.empty() ? &app : chosen.front())->help()));
    return 0;
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; {} --help says what works", one_sentence(error.what()), kName));
  }
  return summary->parsed()      ? print_summary(wish)
         : comparison->parsed() ? print_comparison(wish)
                                : print_published(wish);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  try {
    const int code = run(argc, argv);
    finish_output();
    return code;
  } catch (const UsageError& error) {
    print_error_line(fmt::format("{}: {}", kName, error.what()));
    return 2;
  } catch (const std::bad_alloc&) {
    print_error_line(fmt::format("{}: the memory does not suffice for these traces; try one file at a time", kName));
    return 3;
  } catch (const std::exception& error) {
    print_error_line(fmt::format("{}: {}", kName, error.what()));
    return 3;
  }
}
