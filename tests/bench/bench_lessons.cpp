// Times what a reader waits for: starting and stopping the ranks, each lesson, and the whole of lesson 09, beside the
// targets that the project has set itself for a machine with two cores. Every time is the middle one of several runs,
// and lesson 09 is also given as a ratio to work that was timed in the same run.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "sim/ranks/world.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "tests/bench/flops_by_halves.hpp"
#include "tests/bench/multiply_add_peak.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;

namespace {

double seconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double middle(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double middle_of(int runs, const std::function<void()>& work) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) times.push_back(seconds(work));
  return middle(times);
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

constexpr int kSteps = 10;

// The layouts of lesson 09's default run; each has one bucket.
std::vector<Layout> layouts_of_lesson_09() {
  LayoutOptions options;
  options.parameter_alignment = 1;
  std::vector<Layout> layouts;
  for (const Grid& grid : {Grid().dp(4).tp(2), Grid().dp(2).tp(4)})
    layouts.push_back(plan_layout(proof_of_concept_parameters(), grid, options));
  return layouts;
}

// A matrix, and how often lesson 09 orthogonalizes it.
struct Repeated {
  Shape shape;
  int times = 0;
};

// The default run of lesson 09: ten steps of both layouts, in each of which every rank that owns an element of a matrix
// orthogonalizes all of it, and ten steps of the reference, which serves both.
std::vector<Repeated> work_of_lesson_09() {
  std::vector<Repeated> work;
  for (const Parameter& parameter : proof_of_concept_parameters()) work.push_back({parameter.shape, kSteps});
  for (const Layout& layout : layouts_of_lesson_09())
    for (const DistMeta& meta : layout.parameters())
      for (int dp = 0; dp < layout.grid.dp(); ++dp)
        if (!layout.owned_range(meta, dp).empty())
          work[static_cast<std::size_t>(meta.parameter)].times += kSteps * layout.grid.tp();
  return work;
}

double work_in_flops(Precision precision) {
  double flops = 0;
  for (const Repeated& matrix : work_of_lesson_09())
    flops += matrix.times * newton_schulz_flops_by_halves(matrix.shape.rows, matrix.shape.cols, precision);
  return flops;
}

// Seconds in PyTorch, in fp32 and in bf16.
struct InTorch {
  double job[2] = {};       // lesson 09 from start to end, without its comparison
  double products[2] = {};  // its Newton–Schulz alone
};

// None where there is no PyTorch.
std::optional<InTorch> seconds_in_torch() {
  const TemporaryFolder folder;
  std::ofstream job(folder.file("job"));
  job << "steps " << kSteps << "\n";
  for (const Layout& layout : layouts_of_lesson_09()) {
    job << "layout " << layout.grid.dp() << " " << layout.grid.tp() << "\n";
    for (const DistMeta& meta : layout.parameters())
      job << "matrix " << meta.full_shape.rows << " " << meta.full_shape.cols << " "
          << static_cast<int>(meta.tp_split_dim) << " " << meta.global_range.begin << " " << meta.global_range.end
          << "\n";
  }
  job.close();
  // Debian's PyTorch belongs to the system's Python, which need not be the first on the path.
  const std::vector<std::string> script = {std::string(MUONWALK_ROOT) + "/tests/bench/lesson_09_in_torch.py",
                                           folder.file("job")};
  testing::Outcome outcome = testing::run_program({"/usr/bin/env", "python3", script[0], script[1]}, 600);
  if (outcome.exit_code == 77)
    outcome = testing::run_program({"/usr/bin/env", "/usr/bin/python3", script[0], script[1]}, 600);
  if (outcome.exit_code != 0 && outcome.exit_code != 77)
    fmt::print("  lesson 09 in PyTorch ended {}: {}\n", testing::end_text(outcome), outcome.err);
  if (outcome.exit_code != 0) return std::nullopt;
  std::istringstream numbers(outcome.out);
  InTorch result;
  numbers >> result.job[0] >> result.job[1] >> result.products[0] >> result.products[1];
  return result;
}

// What the programs that were run and have ended took of all processors together.
double processor_seconds_of_children() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

// An engine in a precision, what has been set for it, and what it took.
struct Engine {
  const char *products, *precision;
  double most_of_floor;                       // times the floor; 0: nothing was set
  double least_of_torch;                      // how many times as long PyTorch's job should take; 0: nothing was set
  double peak = 0;                            // GFLOP/s that all cores reach with the vectors that it uses
  std::vector<double> times = {}, busy = {};  // seconds; and processor seconds per core
};

// Lesson 09 with each engine in each precision, in turns with PyTorch, beside the floor: the time in which the cores
// could do its multiply-adds and nothing else, with the vectors that the engine uses. Half of a symmetric product is
// saved; in bf16 (c A) A is none. On a machine that others use too, the processor time tells more than the clock.
void lesson_09() {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const double peak = bench::multiply_add_peak_of(cores);
  const double avx2 = bench::multiply_add_peak_of(cores, bench::MultiplyAdd::avx2);
  const double pairs = bench::multiply_add_peak_of(cores, bench::MultiplyAdd::pairs);
  const double tiles = bench::multiply_add_peak_of(cores, bench::MultiplyAdd::tiles);
  fmt::print("Lesson 09, both layouts, {} steps, checks included: {:.0f} GFLOP in fp32, {:.0f} in bf16\n", kSteps,
             work_in_flops(Precision::fp32) / 1e9, work_in_flops(Precision::bf16) / 1e9);
  fmt::print("  {} cores reach {:.0f} GFLOP/s in multiply-adds of float32, {:.0f} in vectors of 256 bits, {}, {}\n",
             cores, peak, avx2, pairs > 0 ? fmt::format("{:.0f} in vdpbf16ps", pairs) : "have no vdpbf16ps",
             tiles > 0 ? fmt::format("{:.0f} in tdpbf16ps", tiles) : "and have no AMX");
  const double of_eigen = std::string(eigen_code().name) == "avx512" ? peak : avx2;
  std::vector<Engine> engines = {
      {"chain", "fp32", 1.25, 2.3, peak},
      {"eigen", "fp32", 1.5, 1.9, of_eigen},
      {"chain", "bf16", 1.6, 2.4, std::max(peak, pairs)},
      {"eigen", "bf16", 0, 0, of_eigen},
      {"tiles", "bf16", tiles > 0 ? 2.5 : 0.0, tiles > 0 ? 1.0 : 0.0, std::max(peak, tiles)}};
  std::vector<double> job[2], products[2];  // in PyTorch, in fp32 and in bf16
  for (int turn = 0; turn < 3; ++turn) {
    for (Engine& engine : engines) {
      const double before = processor_seconds_of_children();
      engine.times.push_back(seconds([&] {
        run_lesson("lesson_09_full_step",
                   {"--verbose", "0", "--products", engine.products, "--precision", engine.precision});
      }));
      engine.busy.push_back((processor_seconds_of_children() - before) / cores);
    }
    if (const std::optional<InTorch> torch = seconds_in_torch()) {
      for (int i = 0; i < 2; ++i) job[i].push_back(torch->job[i]), products[i].push_back(torch->products[i]);
    }
  }
  const bool torch = !job[0].empty();
  const auto target = [](const char* sign, double value) {
    return value > 0 ? fmt::format("{} {:<5}", sign, value) : std::string(7, ' ');
  };
  fmt::print("                time            of its floor   processor time{}\n",
             torch ? "     PyTorch's job takes   its products alone" : "");
  for (const Engine& engine : engines) {
    const bool bf16 = std::string(engine.precision) == "bf16";
    const double floor = work_in_flops(bf16 ? Precision::bf16 : Precision::fp32) / 1e9 / engine.peak;
    const double time = middle(engine.times);
    fmt::print("  {} {}  {:6.2f} s  {:5.2f} × {:.2f} s {}        {:5.2f} ×", engine.products, engine.precision, time,
               time / floor, floor, target("≤", engine.most_of_floor), middle(engine.busy) / floor);
    if (torch)
      fmt::print("           {:5.2f} × {}              {:5.2f} ×", middle(job[bf16]) / time,
                 target("≥", engine.least_of_torch), middle(products[bf16]) / time);
    fmt::print("\n");
  }
  const auto busy = [&](int i) { return middle(engines[i].busy); };
  fmt::print("  bf16 takes {:.2f} × the time of fp32 with eigen (target 1), {:.2f} × with chain\n", busy(3) / busy(1),
             busy(2) / busy(0));
  if (torch)
    fmt::print("  PyTorch's job takes {:.2f} s in fp32 and {:.2f} s in bf16\n", middle(job[0]), middle(job[1]));
  else
    fmt::print("  not compared with PyTorch, which takes Debian's python3-torch and libopenblas0-pthread\n");
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
  const auto [fastest, slowest] = std::minmax_element(plain.begin(), plain.end());
  fmt::print(
      "  --trace, dp 4 × tp 2: {:.3f} × the time without it (target 1.02); the slowest run without it is {:.3f} × the "
      "fastest\n",
      middle(traced) / middle(plain), *slowest / *fastest);
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

  lesson_09();
  cost_of_tracing();
  return 0;
}
