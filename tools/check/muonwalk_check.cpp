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
#include "src/errors.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/file_identity.hpp"
#include "tools/check/dump.hpp"
#include "tools/check/verdict.hpp"

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

  std::vector<NamedPath> paths = {{"--json", request.json, PathUse::writes}, {"--html", request.html, PathUse::writes}};
  for (const auto& list : {request.dumps, request.save_load})
    for (const std::string& path : list) paths.push_back({"the dump", path, PathUse::reads});
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
  try {
    const auto [found, step] = verdict_of(request);
    verdict = found;
    if (html != nullptr) write(html.get(), verdict_page(verdict, step));
  } catch (const UsageError& error) {
    verdict.verdict = Verdict::unjudgeable;
    verdict.reason = error.what();
  }
  if (json != nullptr) write(json.get(), verdict_json(verdict));
  if (!verdict.parameters.empty()) sim::print_as(false, {}, [&] { return verdict_text(verdict); });
  if (verdict.verdict == Verdict::unjudgeable) throw UsageError(verdict.reason);
  return verdict.verdict == Verdict::clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return muonwalk::sim::run_reading_program(kName, "try one step at a time", [&] { return run(argc, argv); });
}
