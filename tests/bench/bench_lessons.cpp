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

// A matrix, and how often lesson 09 orthogonalizes it.
struct Repeated {
  Shape shape;
  int times = 0;
};

// The default run of lesson 09: ten steps of both layouts, in each of which every rank that owns an element of a matrix
// orthogonalizes all of it, and ten steps of the reference, which serves both.
std::vector<Repeated> work_of_lesson_09() {
  std::vector<Repeated> work;
  for (const Parameter& parameter : proof_of_concept_parameters()) work.push_back({parameter.shape, 10});
  for (const Grid& grid : {Grid().dp(4).tp(2), Grid().dp(2).tp(4)}) {
    LayoutOptions options;
    options.parameter_alignment = 1;
    const Layout layout = plan_layout(proof_of_concept_parameters(), grid, options);
    for (const Buffer& buffer : layout.buffers)
      for (const DistMeta& meta : buffer.parameters)
        for (int dp = 0; dp < grid.dp(); ++dp)
          if (!layout.owned_range(meta, dp).empty())
            for (Repeated& matrix : work)
              if (matrix.shape.rows == meta.full_shape.rows && matrix.shape.cols == meta.full_shape.cols) {
                matrix.times += 10 * grid.tp();
                break;
              }
  }
  return work;
}

double work_in_flops(Precision precision) {
  double flops = 0;
  for (const Repeated& matrix : work_of_lesson_09())
    flops += matrix.times * newton_schulz_flops_by_halves(matrix.shape.rows, matrix.shape.cols, precision);
  return flops;
}

// Seconds that the same products take in PyTorch in fp32 and bf16, none where there is no PyTorch.
std::optional<std::pair<double, double>> seconds_in_torch() {
  const TemporaryFolder folder;
  std::ofstream job(folder.file("job"));
  for (const Repeated& matrix : work_of_lesson_09())
    job << matrix.shape.rows << " " << matrix.shape.cols << " " << matrix.times << "\n";
  job.close();
  // Debian's PyTorch belongs to the system's Python, which need not be the first on the path.
  const std::vector<std::string> script = {std::string(MUONWALK_ROOT) + "/tests/bench/products_in_torch.py",
                                           folder.file("job")};
  testing::Outcome outcome = testing::run_program({"/usr/bin/env", "python3", script[0], script[1]}, 600);
  if (outcome.exit_code != 0)
    outcome = testing::run_program({"/usr/bin/env", "/usr/bin/python3", script[0], script[1]}, 600);
  if (outcome.exit_code != 0) return std::nullopt;
  std::istringstream numbers(outcome.out);
  std::pair<double, double> result;
  numbers >> result.first >> result.second;
  return result;
}

// What the programs that were run and have ended took of all processors together.
double processor_seconds_of_children() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

// Lesson 09 with each engine in each precision, beside the time in which the cores could do its multiply-adds and
// nothing else, with the vectors that the engine uses. Half of a symmetric product is saved; in bf16 (c A) A
// is none. On a machine that others use too, the processor time tells more than the clock.
void lesson_09() {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const double peak = bench::multiply_add_peak_of(cores);
  const double avx2 = bench::multiply_add_peak_of(cores, bench::MultiplyAdd::avx2);
  const double pairs = bench::multiply_add_peak_of(cores, bench::MultiplyAdd::pairs);
  const double tiles = bench::multiply_add_peak_of(cores, bench::MultiplyAdd::tiles);
  fmt::print("Lesson 09, both layouts, 10 steps, checks included: {:.0f} GFLOP in fp32, {:.0f} in bf16\n",
             work_in_flops(Precision::fp32) / 1e9, work_in_flops(Precision::bf16) / 1e9);
  fmt::print("  {} cores reach {:.0f} GFLOP/s in multiply-adds of float32, {:.0f} in vectors of 256 bits, {}, {}\n",
             cores, peak, avx2, pairs > 0 ? fmt::format("{:.0f} in vdpbf16ps", pairs) : "have no vdpbf16ps",
             tiles > 0 ? fmt::format("{:.0f} in tdpbf16ps", tiles) : "and have no AMX");
  const auto run = [](const char* products, const char* precision) {
    return seconds([&] {
      run_lesson("lesson_09_full_step", {"--verbose", "0", "--products", products, "--precision", precision});
    });
  };
  constexpr int kEngines = 5;
  const char* const names[kEngines][2] = {
      {"chain", "fp32"}, {"eigen", "fp32"}, {"chain", "bf16"}, {"eigen", "bf16"}, {"tiles", "bf16"}};
  std::vector<double> times[kEngines], busy[kEngines], in_torch[2];  // in turns
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < kEngines; ++i) {
      const double before = processor_seconds_of_children();
      times[i].push_back(run(names[i][0], names[i][1]));
      busy[i].push_back((processor_seconds_of_children() - before) / cores);
    }
    const auto torch = seconds_in_torch();
    if (torch) in_torch[0].push_back(torch->first), in_torch[1].push_back(torch->second);
  }
  for (auto& all : times) std::sort(all.begin(), all.end());
  for (auto& all : busy) std::sort(all.begin(), all.end());
  for (auto& all : in_torch) std::sort(all.begin(), all.end());
  const bool torch = in_torch[0].size() == 3;
  for (int i = 0; i < kEngines; ++i) {
    const bool fp32 = i < 2;
    const bool narrow = i % 2 == 1 && std::string(eigen_code().name) != "avx512";
    const double reached = narrow               ? avx2
                           : fp32 || i % 2 == 1 ? peak
                           : i == 2             ? std::max(peak, pairs)
                                                : std::max(peak, tiles);
    const double floor = work_in_flops(fp32 ? Precision::fp32 : Precision::bf16) / 1e9 / reached;
    fmt::print("  {} {}  {:6.2f} s, {:5.2f} × its floor of {:.2f} s; in processor time {:5.2f} ×", names[i][0],
               names[i][1], times[i][1], times[i][1] / floor, floor, busy[i][1] / floor);
    if (torch) fmt::print("  PyTorch takes {:5.2f} ×", in_torch[fp32 ? 0 : 1][1] / times[i][1]);
    fmt::print("{}\n", i == 0   ? "   targets 1.4, 3.5"
                       : i == 1 ? "   target 1.6"
                       : i == 2
                           ? fmt::format("   {:.2f} × the chain's fp32 (target 0.7, where vdpbf16ps is twice as fast)",
                                         busy[2][1] / busy[0][1])
                       : i == 4 && tiles > 0 ? "   target 2.5"
                                             : "");
  }
  if (!torch) fmt::print("  not compared with PyTorch: there is none (Debian: python3-torch)\n");
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

  lesson_09();
  cost_of_tracing();
  return 0;
}
