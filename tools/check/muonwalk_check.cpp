// muonwalk-check: says which recipe the steps of a dump are, or which known bug.

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "sim/terminal/reading_program.hpp"
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"
#include "src/text/names.hpp"
#include "tools/check/dump.hpp"
#include "tools/check/trace_check.hpp"
#include "tools/check/verdict.hpp"
#include "tools/trace/reader.hpp"

namespace {

using namespace muonwalk;
using namespace muonwalk::check;

constexpr const char* kName = "muonwalk-check";

// What was asked for on the command line.
struct Request {
  std::vector<std::string> dumps, save_load;
  std::vector<std::pair<std::string, std::string>> pair = {
      {"before", ""}, {"grad", ""}, {"after", ""}, {"momentum_before", ""}, {"momentum_after", ""}};
  std::string hyper, json, html;
  std::int64_t step = 1;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool replicas = false, unrounded = false;
  std::vector<std::string> traces, matrices;
  std::string plan = "a";
  int dp = 1, tp = 1, steps = 0, weight_bytes = 4;
  std::int64_t bucket = 0;
};

// The verdict, and the step that a page shows.
std::pair<DumpVerdict, DumpedStep> verdict_of(const Request& request) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [what, path] : request.pair)
    if (!path.empty()) given.emplace_back(what, path);
  if (!request.dumps.empty() + !given.empty() + !request.save_load.empty() != 1)
    throw UsageError(
        "what is to be judged is either DUMP…, or --before, --grad and --after, or --save-load A B: give one "
        "of the three");
  if (request.replicas && request.dumps.empty())
    throw UsageError("--replicas compares the ranks of a dump: name DUMP…");
  if (!request.save_load.empty()) {
    const auto saved = read_dump({request.save_load[0]}), loaded = read_dump({request.save_load[1]});
    if (saved.size() != 1 || loaded.size() != 1)
      throw UsageError(
          "--save-load compares one step, and a folder has several; name the files of one, or another folder");
    return {check_loaded(saved[0], loaded[0]), loaded[0]};
  }
  const auto missing = [](const auto& one) { return one.second.empty(); };
  if (!given.empty() && std::any_of(request.pair.begin(), request.pair.begin() + 3, missing))
    throw UsageError("a step is judged from --before, --grad and --after, and one of them is missing: give all three");
  const auto steps = given.empty() ? read_dump(request.dumps) : read_files(given, request.hyper, request.step);
  const Question question = request.replicas ? Question::replicas : Question::recipe;
  const auto progress = [](std::size_t done, std::size_t of) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{} of {} parameters{}", done, of, done == of ? "\n" : "");
  };
  return {check_steps(steps, question, request.threads, progress), steps.back()};
}

// What is asked of traces, as options of a command of its own.
CLI::App* trace_command(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("trace", "holds the calls in traces of a run against the plan of a strategy");
  command->add_option("TRACE", request.traces, "torch.profiler's or a lesson's: a file for each rank, or a folder")
      ->required();
  command->add_option("--plan", request.plan, "a strategy's letter, as in lesson 16; a, gather everything, by default");
  command->add_option("--matrices", request.matrices, "ROWSxCOLS, with :rows or :columns where tp cuts it, and *COUNT")
      ->required();
  command->add_option("--dp", request.dp, "data-parallel ranks")->check(CLI::Range(1, 1 << 20));
  command->add_option("--tp", request.tp, "tensor-parallel ranks")->check(CLI::Range(1, 1 << 20));
  command->add_option("--bucket", request.bucket, "elements of a bucket; 0, by default: one for all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 53));
  command->add_flag("--fp32", request.unrounded, "float32 is gathered for Newton–Schulz; bfloat16 by default");
  command->add_option("--weights", request.weight_bytes, "what new weights travel in: fp32 (default), bf16, or none")
      ->transform(CLI::CheckedTransformer(std::map<std::string, int>{{"fp32", 4}, {"bf16", 2}, {"none", 0}}));
  command->add_option("--steps", request.steps, "how many steps a trace has, where it doesn't name them")
      ->check(CLI::Range(1, 1 << 20));
  return command->fallthrough();
}

// The verdict on traces, and what is printed of it.
std::pair<DumpVerdict, std::vector<std::string>> verdict_of_traces(const Request& request) {
  const std::optional<Strategy> strategy = strategy_of(request.plan);
  if (!strategy)
    throw UsageError("--plan " + as_typed(request.plan) + " is not known; it is a letter from a to h, as in lesson 16");
  MeantStep meant{*strategy, matrices_of(request.matrices), Grid().dp(request.dp).tp(request.tp), request.bucket};
  meant.settings.newton_schulz.precision = request.unrounded ? Precision::fp32 : Precision::bf16;
  meant.weight_bytes = request.weight_bytes;
  meant.steps = request.steps;
  return check_trace(sim::read_traces(request.traces), meant);
}

int run(int argc, char** argv) {
  Request request;
  CLI::App app{"Judges steps of an optimizer that another program has dumped: which recipe it is, or which known bug.",
               kName};
  app.add_option("DUMP", request.dumps, "a folder with a file for each rank and step, or such files");
  for (auto& [what, path] : request.pair) {
    std::string option = "--" + what;
    std::replace(option.begin(), option.end(), '_', '-');
    app.add_option(option, path, "of a single process: a safetensors file with this tensor of each parameter")
        ->type_name("FILE");
  }
  app.add_option("--hyper", request.hyper, "with --before: what the step was to use, such as '{\"lr\": 0.02}'")
      ->type_name("JSON");
  app.add_option("--step", request.step, "with --before: which step of the optimizer it is; 1 by default")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53));
  app.add_option("--save-load", request.save_load, "compares a step that was saved, and what was loaded again")
      ->type_name("A B")
      ->expected(2);
  app.add_flag("--replicas", request.replicas, "only says which ranks disagree, and since which step and tensor");
  app.add_option("--json", request.json, "also write the verdict as JSON")->type_name("FILE");
  app.add_option("--html", request.html, "also write a page: a map of each parameter by rank")->type_name("FILE");
  app.add_option("--threads", request.threads, "threads of products; all processors by default")
      ->check(CLI::Range(1, 1024));
  const CLI::App* const of_traces = trace_command(app, request);
  if (!sim::parse_command_line(app, argc, argv)) return 0;
  for (const CLI::Option* each : app.get_options())
    if (of_traces->parsed() && each->count() > 0 && each->get_name() != "--json")
      throw UsageError(each->get_name() + " goes with a dump, and trace judges traces alone; leave one of the two out");

  std::vector<NamedPath> paths = {{"--json", request.json, PathUse::writes}, {"--html", request.html, PathUse::writes}};
  for (const auto& list : {request.dumps, request.save_load, request.traces})
    for (const std::string& path : list) paths.push_back({"what is judged", path, PathUse::reads});
  for (const auto& [what, path] : request.pair) paths.push_back({"--" + what, path, PathUse::reads});
  require_distinct_files(paths);
  // Opened before anything is read, so that a path that can't be written is known in time.
  const auto file = [](const std::string& path) { return path.empty() ? nullptr : std::make_unique<FileBeside>(path); };
  const std::unique_ptr<FileBeside> json = file(request.json), html = file(request.html);
  const auto write = [](FileBeside* into, const std::string& text) {
    into->write(text.data(), text.size());
    into->commit();
  };

  rlimit files = {};  // a dump of many ranks has as many files open as they have written
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  DumpVerdict verdict;
  std::vector<std::string> text;
  try {
    if (of_traces->parsed()) {
      std::tie(verdict, text) = verdict_of_traces(request);
    } else {
      const auto [found, step] = verdict_of(request);
      verdict = found;
      text = verdict_text(verdict);
      if (html != nullptr) write(html.get(), verdict_page(verdict, step));
    }
  } catch (const UsageError& error) {
    verdict.verdict = Verdict::unjudgeable;
    verdict.reason = error.what();
  }
  if (json != nullptr) write(json.get(), verdict_json(verdict));
  if (!verdict.parameters.empty()) sim::print_as(false, {}, [&] { return text; });
  if (verdict.verdict == Verdict::unjudgeable) throw UsageError(verdict.reason);
  return verdict.verdict == Verdict::clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // What one parameter took is given back before the next one, whatever lies around it.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
  return muonwalk::sim::run_reading_program(kName, "try one step at a time", [&] { return run(argc, argv); });
}
