// muonwalk-trace: reads traces of distributed training and says what was counted, next to what it means.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "sim/terminal/reading_program.hpp"
#include "src/text/text.hpp"
#include "tools/trace/output.hpp"
#include "tools/trace/reader.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::sim;

constexpr const char* kName = "muonwalk-trace";

// What was asked for on the command line.
struct Request {
  bool json = false;
  std::vector<std::string> files;        // of summary
  std::string muon, adamw;               // of published
  std::vector<std::string> async_files;  // of published --async: Muon's and AdamW's
};

int print_summary(const Request& request) {
  const Summary summary = summarize(read_traces(request.files));
  print_as(
      request.json, [&] { return summary_json(summary); }, [&] { return summary_text(summary); });
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
  CLI::App* published = app.add_subcommand("published", "published figures, counted again, next to corrected ones");
  published->add_option("FILE_MUON", request.muon, "the published trace of Muon, dp 2 × tp 2")->required();
  published->add_option("FILE_ADAMW", request.adamw, "the published trace of AdamW, dp 4")->required();
  published->add_option("--async", request.async_files, "the traces with async_op=True: Muon's, then AdamW's")
      ->expected(2);
  summary->add_flag("--json", request.json, "print JSON");

  if (!parse_command_line(app, argc, argv)) return 0;
  return summary->parsed() ? print_summary(request) : print_published(request);
}

}  // namespace

int main(int argc, char** argv) {
  return run_reading_program(kName, "try one file at a time, or record fewer steps", [&] { return run(argc, argv); });
}
