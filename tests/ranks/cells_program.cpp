// What a kernel does with the lessons' library: cells_program CELLS. Each cell begins a lesson, takes a step and checks
// it, and an interrupt ends it with a sentence. A kernel's own handler would end the program, as that of xeus-cpp does.
// tests/soak interrupts it, from the line "ready" on.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/classroom/lesson.hpp"
#include "sim/terminal/end_on_signals.hpp"
#include "src/errors.hpp"
#include "tests/ranks/in_memory.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

struct Local {
  Flat sum;
};

void add_up(Rank& rank, Local& local) {
  for (int i = 0; i < 200; ++i) local.sum = rank.dp().all_reduce(Flat{static_cast<float>(rank.rank())});
}

void run_cell() {
  LessonInfo info;
  info.name = "lesson_78_cells";
  info.title = "Cells";
  Options options = muonwalk::testing::in_memory(Grid().dp(3));
  options.verbose = 0;
  Lesson<Local> lesson(info, options);
  lesson.step("add up", add_up);
  lesson.check("the sum", &Local::sum, [](const RankInfo&) { return Flat{3}; });
  if (!lesson.all_equal()) throw RunError("the sum is wrong");
}

}  // namespace

int main(int, char** argv) {
  signal(SIGINT, [](int) { _exit(4); });
  muonwalk_let_work_be_interrupted();
  std::puts("ready");
  std::fflush(stdout);
  int interrupted = 0;
  for (int cell = 0; cell < std::atoi(argv[1]); ++cell) {
    try {
      run_cell();
    } catch (const std::exception& error) {
      if (std::string(error.what()).rfind("interrupted: ", 0) != 0) {
        std::fprintf(stderr, "cells_program: %s\n", error.what());
        return 3;
      }
      ++interrupted;
    }
  }
  std::printf("%d cells were interrupted\ncells_program: OK\n", interrupted);
}
