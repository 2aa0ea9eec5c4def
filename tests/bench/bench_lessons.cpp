// Times what a reader waits for: starting and stopping the ranks, each lesson, and the whole of lesson 09, beside the
// targets that the project has set itself for a machine with two cores. Every time is the middle one of several runs,
// and lesson 09 is also given as a ratio to work that was timed in the same run.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "sim/cluster/world.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "src/train/reference_run.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

using namespace muonwalk;

namespace {

double seconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double middle_of(int runs, const std::function<void()>& work) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) times.push_back(seconds(work));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print(const std::string& what, double measured, double target) {
  fmt::print("  {:<58}{:>8.3f} s   target {:>5.2f} s   {:>5.2f} of it   {}\n", what, measured, target,
             measured / target, measured <= target ? "ok" : "MISSED");
}

void start_and_stop(const Grid& grid, int runs, double target) {
  sim::Options options;
  options.grid = grid;
  const double time = middle_of(runs, [&] { sim::start_world(options).reset(); });
  print(fmt::format("{} processes, {} × pp {}: start, connect, stop", grid.size(), Grid(grid).pp(1).text(), grid.pp()),
        time, target);
}

// The names in lessons/CMakeLists.txt, the one list of lessons.
std::vector<std::string> lessons() {
  std::ifstream list(std::string(MUONWALK_ROOT) + "/lessons/CMakeLists.txt");
  std::vector<std::string> names;
  for (std::string line; std::getline(list, line);)
    if (line.rfind("add_lesson(", 0) == 0) names.push_back(line.substr(11, line.find_first_of(" )", 11) - 11));
  return names;
}

void run_lesson(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> command = {std::string(MUONWALK_BIN) + "/" + name};
  command.insert(command.end(), options.begin(), options.end());
  const testing::Outcome outcome = testing::run_program(command, 600);
  if (outcome.exit_code != 0) fmt::print("  {} ended {}: {}\n", name, testing::end_text(outcome), outcome.err);
}

// The Newton–Schulz of all ranks of a grid, over that of one process, on the matrices and the layout of lesson 09.
double repeated_work(const Grid& grid) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  const Layout layout = plan_layout(proof_of_concept_parameters(), grid, options);
  double serial = 0, all = 0;
  for (const Parameter& parameter : proof_of_concept_parameters())
    serial += newton_schulz_flops(parameter.shape.rows, parameter.shape.cols);
  for (int rank = 0; rank < grid.size(); ++rank)
    all += flops(muon_plan(layout, grid.place(rank), {}), phases::orthogonalize);
  return all / serial;
}

// The same run with --trace and without take turns, so that both see the same machine; the ratio is that of the middle
// ones.
void cost_of_tracing() {
  const TemporaryFolder folder;
  std::vector<double> plain, traced;
  for (int run = 0; run < 7; ++run) {
    plain.push_back(seconds([] { run_lesson("lesson_09_full_step", {"--dp", "4", "--tp", "2"}); }));
    traced.push_back(seconds([&] {
      run_lesson("lesson_09_full_step", {"--dp", "4", "--tp", "2", "--trace", folder.file("run.json")});
    }));
  }
  std::sort(plain.begin(), plain.end());
  std::sort(traced.begin(), traced.end());
  fmt::print(
      "  --trace, dp 4 × tp 2: {:.3f} × the time without it (target 1.02); the slowest run without it is {:.3f} × the "
      "fastest\n",
      traced[traced.size() / 2] / plain[plain.size() / 2], plain.back() / plain.front());
}

}  // namespace

int main() {
  fmt::print("Starting the ranks, three groups each\n");
  start_and_stop(Grid().dp(2).tp(2).pp(2), 5, 0.5);
  start_and_stop(Grid().dp(8), 5, 0.5);
  start_and_stop(Grid().dp(4).tp(4).pp(4), 3, 5);
  start_and_stop(Grid().dp(64), 3, 5);

  fmt::print("Lessons, from start to end\n");
  for (const std::string& name : lessons())
    if (name != "lesson_09_full_step") print(name, middle_of(3, [&] { run_lesson(name, {}); }), 1);

  fmt::print("Lesson 09, both layouts, 10 steps, checks included\n");
  const RandomTraining data(proof_of_concept_parameters(), 10, 1);
  double serial = 0;
  const double whole = middle_of(3, [] { run_lesson("lesson_09_full_step", {}); });
  serial = middle_of(3, [&] { ReferenceRun(data, std::make_unique<Muon>(MuonSettings())).after(10, 4); });
  print("fp32", whole, 7);
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  // The ranks of both layouts repeat the Newton–Schulz of one process so many times; the reference is run once more.
  const double repeated = repeated_work(Grid().dp(4).tp(2)) + repeated_work(Grid().dp(2).tp(4)) + 1;
  fmt::print("  fp32: {:.2f} × the time that its {:.2f} × serial work takes when {} cores do nothing else\n",
             whole / (serial * repeated / cores), repeated, cores);
  cost_of_tracing();
  fmt::print("  bf16: {:.3f} s (no target)\n", middle_of(3, [] {
               run_lesson("lesson_09_full_step", {"--precision", "bf16"});
             }));
  return 0;
}
