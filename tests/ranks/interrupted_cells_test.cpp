// What Jupyter's button Interrupt does to ranks that are fibers of a kernel: SIGINT while a step waits, while the
// process computes, and while nothing runs.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "sim/classroom/lesson.hpp"
#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "tests/ranks/in_memory.hpp"
#include "tests/ranks/printed.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::printed;

namespace {

struct Local {
  Flat sum;
};

LessonInfo test_info() {
  LessonInfo info;
  info.name = "lesson_78_cells";
  info.title = "Cells";
  return info;
}

Options in_kernel(const Grid& grid) {
  Options options = muonwalk::testing::in_memory(grid);
  options.verbose = 0;
  options.timeout_seconds = 600;  // longer than the test may take: nothing but the interrupt ends the waits below
  return options;
}

void interrupt() { kill(getpid(), SIGINT); }

// The ranks wait in a ring for what nobody sends.
void wait_for_each_other(Rank& rank, Local&) {
  if (rank.rank() == 0) interrupt();
  Flat never(1);
  rank.dp().recv(never.data(), 1, (rank.place.dp + 1) % rank.grid.dp());
}

void add_up(Rank& rank, Local& local) { local.sum = rank.dp().all_reduce(Flat{static_cast<float>(rank.rank())}); }

Flat sum_of(const RankInfo& rank) { return Flat{static_cast<float>(rank.grid.dp() * (rank.grid.dp() - 1) / 2)}; }

Flat sum_of_an_interrupted(const RankInfo& rank) {
  interrupt();
  return sum_of(rank);
}

struct sigaction handler_of_interrupts() {
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  return now;
}

// As when setup.hpp loads the library. (Tests run with a handler of doctest's own.)
void become_a_kernel() {
  signal(SIGINT, SIG_DFL);
  muonwalk_let_work_be_interrupted();
}

// The lesson begins in this process, runs, and holds.
void require_a_lesson_to_run() {
  Lesson<Local> lesson(test_info(), in_kernel(Grid().dp(3)));
  printed([&] {
    lesson.step("add up", add_up);
    lesson.check("the sum", &Local::sum, sum_of);
  });
  REQUIRE(lesson.all_equal());
}

}  // namespace

TEST_CASE(
    "a kernel: an interrupt ends the ranks' work with a sentence, is not noticed when idle, and the next cell works") {
  become_a_kernel();
  for (int ranks : {1, 2, 5}) {
    CAPTURE(ranks);
    auto lesson = std::make_unique<Lesson<Local>>(test_info(), in_kernel(Grid().dp(ranks).tp(2)));
    if (ranks > 1)
      CHECK_THROWS_WITH_AS(lesson->step("wait", wait_for_each_other),
                           "interrupted: the ranks stopped in the middle of their work; begin the lesson again",
                           RunError);
    // What is left of that lesson says what to do, and does not wait.
    if (ranks > 1)
      CHECK_THROWS_WITH_AS(lesson->step("add up", add_up), doctest::Contains("begin the lesson again"), RunError);
    CHECK((handler_of_interrupts().sa_handler == SIG_IGN));
    interrupt();
    CHECK_FALSE(InterruptibleWork::asked_to_end());
    require_a_lesson_to_run();
  }
}

TEST_CASE("a kernel: an interrupt while the parent computes ends the cell as well") {
  become_a_kernel();
  Lesson<Local> lesson(test_info(), in_kernel(Grid().dp(3)));
  printed([&] {
    lesson.step("add up", add_up);
    CHECK_THROWS_AS(lesson.check("the sum", &Local::sum, sum_of_an_interrupted), RunError);
  });
  CHECK_FALSE(InterruptibleWork::asked_to_end());
  require_a_lesson_to_run();
}

namespace {
std::atomic<int> heard{0};
void interrupt_kernel(int) { _exit(4); }
}  // namespace

TEST_CASE("a kernel that has a handler of its own, which ends it, lives on when it is interrupted while idle") {
  struct sigaction own {};
  own.sa_handler = [](int) { ++heard; };
  sigaction(SIGINT, &own, nullptr);
  muonwalk_let_work_be_interrupted();
  interrupt();
  Lesson<Local> lesson(test_info(), in_kernel(Grid().dp(2)));
  CHECK_THROWS_AS(lesson.step("wait", wait_for_each_other), RunError);
  interrupt();
  CHECK(heard == 0);
}

TEST_CASE("a handler that a cell sets is as it was after the work") {
  become_a_kernel();
  signal(SIGINT, [](int) { ++heard; });
  Lesson<Local> lesson(test_info(), in_kernel(Grid().dp(2)));
  CHECK_THROWS_AS(lesson.step("wait", wait_for_each_other), RunError);
  CHECK(heard == 0);
  interrupt();
  CHECK(heard == 1);
  signal(SIGINT, SIG_IGN);
}

TEST_CASE("a kernel's own handler comes back when the library goes") {
  const pid_t kernel = fork();
  REQUIRE(kernel >= 0);
  if (kernel == 0) {
    // Another run of this program, so that nobody has called it before.
    setenv("MUONWALK_KERNEL_WITH_A_HANDLER", "1", 1);
    execl("/proc/self/exe", "kernel", nullptr);
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(kernel, &status, 0) == kernel);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 42));
}

namespace {

void end_of_a_kernel() { _exit(handler_of_interrupts().sa_handler == interrupt_kernel ? 42 : 2); }

const bool is_a_kernel = [] {
  if (getenv("MUONWALK_KERNEL_WITH_A_HANDLER") == nullptr) return false;
  signal(SIGINT, interrupt_kernel);
  std::atexit(end_of_a_kernel);  // after what comes later
  muonwalk_let_work_be_interrupted();
  if (handler_of_interrupts().sa_handler != SIG_IGN) _exit(3);
  std::exit(0);
}();

}  // namespace

namespace {
std::string told_apart;
}  // namespace

TEST_CASE("a kernel: what is measured comes apart, and its memory is not taken for that of a rank") {
  Options options = in_kernel(Grid().dp(2));
  options.verbose = 1;
  Lesson<Local> lesson(test_info(), options);
  told_apart.clear();
  print_lines_to([](const char*) {}, [](const char* line) { told_apart += std::string(line) + "\n"; });
  lesson.step("add up", [](Rank& rank, Local& local) {
    rank.phase("adding");
    add_up(rank, local);
  });
  lesson.cost([](const RankInfo&) { return Prediction(); });
  lesson.timings();
  print_lines_to(nullptr, nullptr);
  CHECK(told_apart.find("  adding ") != std::string::npos);
  CHECK(told_apart.find("memory") == std::string::npos);
}
