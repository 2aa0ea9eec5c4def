// muonwalk-check: says which recipe the steps of a dump are, or which known bug.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/terminal/reading_program.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"
#include "tools/check/check_dump.hpp"
#include "tools/check/output.hpp"

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
  bool replicas = false;
};

// A dump of many ranks has as many files open as they have written.
void allow_many_files() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// On a terminal, a line that says how far it is, and is gone at the end.
void show_progress(std::size_t done, std::size_t of) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, done == of ? "\r\x1b[K" : "\r{} of {} parameters", done, of);
}

std::vector<DumpedStep> steps_of(const Request& request) {
  if (!request.dumps.empty()) return read_dump(request.dumps);
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [what, path] : request.pair)
    if (!path.empty()) given.emplace_back(what, path);
  std::vector<DumpedStep> steps;
  steps.push_back(read_files(given, request.hyper, request.step));
  return steps;
}

// The verdict, and the step that a page shows.
std::pair<DumpVerdict, DumpedStep> verdict_of(const Request& request) {
  if (request.save_load.empty()) {
    std::vector<DumpedStep> steps = steps_of(request);
    DumpVerdict verdict = request.replicas ? check_replicas(steps) : check_steps(steps, request.threads, show_progress);
    return {std::move(verdict), std::move(steps.back())};
  }
  std::vector<DumpedStep> saved = read_dump({request.save_load[0]}), loaded = read_dump({request.save_load[1]});
  if (saved.size() != 1 || loaded.size() != 1)
    throw UsageError(
        "--save-load compares one step, and a folder has several; name the files of one, or another folder");
  DumpVerdict verdict = check_loaded(saved[0], loaded[0]);
  return {std::move(verdict), std::move(loaded[0])};
}

void require_one_mode(const Request& request) {
  const auto given = [&](std::size_t i) { return !request.pair[i].second.empty(); };
  const bool pair = given(0) || given(1) || given(2);
  if (!request.dumps.empty() + pair + !request.save_load.empty() != 1)
    throw UsageError(
        "what is to be judged is either DUMP…, or --before, --grad and --after, or --save-load A B: give one "
        "of the three");
  if (pair && !(given(0) && given(1) && given(2)))
    throw UsageError("a step is judged from --before, --grad and --after, and one of them is missing: give all three");
  if (request.replicas && request.dumps.empty())
    throw UsageError("--replicas compares the ranks of a dump: name DUMP…");
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
  if (!sim::parse_command_line(app, argc, argv)) return 0;
  require_one_mode(request);

  std::vector<NamedPath> paths = {{"--json", request.json, PathUse::writes, "", ""},
                                  {"--html", request.html, PathUse::writes, "", ""}};
  for (const auto& list : {request.dumps, request.save_load})
    for (const std::string& path : list) paths.push_back({"the dump", path, PathUse::reads, "", ""});
  for (const auto& [what, path] : request.pair) paths.push_back({"--" + what, path, PathUse::reads, "", ""});
  require_distinct_files(paths);
  FilesBeside files;  // opened before anything is read, so that a path that can't be written is known in time
  for (const std::string& path : {request.json, request.html})
    files.push_back(path.empty() ? nullptr : std::make_unique<FileBeside>(path));
  const auto write = [&](std::size_t which, const std::string& text) {
    if (files[which] == nullptr) return;
    files[which]->write(text.data(), text.size());
    files[which]->commit();
  };

  allow_many_files();
  DumpVerdict verdict;
  try {
    const auto [found, step] = verdict_of(request);
    verdict = found;
    if (files[1] != nullptr) write(1, verdict_page(verdict, step));
  } catch (const UsageError& error) {
    verdict.verdict = Verdict::unjudgeable;
    verdict.reason = error.what();
    write(0, verdict_json(verdict));
    throw;
  }
  write(0, verdict_json(verdict));
  sim::print_as(false, {}, [&] { return verdict_text(verdict); });
  if (verdict.verdict == Verdict::unjudgeable) throw UsageError(verdict.reason);
  return verdict.verdict == Verdict::clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return muonwalk::sim::run_reading_program(kName, "try one step at a time", [&] { return run(argc, argv); });
}
