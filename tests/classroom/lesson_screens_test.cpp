// All that a lesson prints, line by line and on which stream, for lessons that go well and lessons that do not. Ranks
// are fibers that talk through memory.

#include <doctest/doctest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/ranks/interrupt.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "tests/golden/golden_text.hpp"
#include "tests/ranks/in_memory.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

struct Held {
  Flat slice;
  Matrix square;
};

LessonInfo screen_info() {
  LessonInfo info;
  info.name = "lesson_78_screen";
  info.title = "All lines";
  info.question =
      "which lines are printed, to whom, in which order, and how are those broken that are longer than a "
      "line of the screen is?";
  info.bugs = {{"off_by_one", "adds one"}, {"other", "does nothing"}};
  info.also_try = {"--tp 4", "--dp 3 --verbose 2"};
  return info;
}

Options in_memory(const Grid& grid, int verbose) {
  Options options = muonwalk::testing::in_memory(grid);
  options.verbose = verbose;
  options.threads = 1;
  return options;
}

std::string all_lines;  // of both streams; sinks are plain functions

// What is printed meanwhile, with "! " before lines on standard error, and what is thrown.
std::string screen_of(const std::function<void()>& work) {
  all_lines.clear();
  print_lines_to([](const char* line) { all_lines += std::string(line) + "\n"; },
                 [](const char* line) { all_lines += std::string("! ") + line + "\n"; });
  try {
    work();
  } catch (const std::exception& error) {
    all_lines += std::string("thrown: ") + error.what() + "\n";
  }
  print_lines_to(nullptr, nullptr);
  return all_lines;
}

void start(Rank& rank, Held& held) {
  held.slice = Flat(2, 0.5f * static_cast<float>(rank.rank() + 1));
  held.square = Matrix(2, 3);
  held.square(1, 2) = static_cast<float>(rank.rank() + (rank.bug("off_by_one") ? 1 : 0));
  rank.show("slice", held.slice).elements({2 * rank.place.dp, 2 * rank.place.dp + 2}, 2 * rank.grid.dp());
  rank.show("square", held.square).whole().note("a note");
  if (rank.rank() == 0) rank.say("rank 0 speaks");
}

void gather(Rank& rank, Held& held) {
  rank.phase("gather");
  const Flat all = rank.dp().all_gather(held.slice);
  rank.show("all", all).bytes(2 * static_cast<Index>(all.size()));
  if (rank.place.tp == 0) rank.tp().barrier();
  if (rank.place.tp == 1) rank.tp().barrier();
}

Matrix right_square(const RankInfo& rank) {
  Matrix square(2, 3);
  square(1, 2) = static_cast<float>(rank.place.rank);
  return square;
}
std::vector<NamedMatrix> held_square(const RankInfo&, const Held& held) {
  return {{"its square", held.square, 10, 20}};
}
std::vector<NamedMatrix> reference_square(const RankInfo& rank) { return {{"its square", right_square(rank), 10, 20}}; }

Prediction predicted(const RankInfo& rank) {
  Prediction prediction;
  prediction.ledger.add("dp", CollectiveKind::all_gather, ElementType::float32, 1,
                        all_gather_traffic(rank.grid.dp(), 2, ElementType::float32));
  prediction.ledger.add("tp", CollectiveKind::barrier, ElementType::bytes, 1, barrier_traffic(rank.grid.tp()));
  prediction.peak_elements = 14;  // a slice, and two squares while one takes the place of the other
  return prediction;
}

// A lesson with all of its parts.
void whole_lesson(const Options& options, bool right = true) {
  Lesson<Held> lesson(screen_info(), options);
  lesson.require([](const RankInfo&) {});
  lesson.plan("the plan of the ranks\nin two lines");
  lesson.say("some words");
  lesson.step("start", start);
  lesson.step("gather", gather);
  lesson.quiet_step("start quietly", start);
  lesson.check("the squares", &Held::square, right_square);
  for (int step = 1; step <= 3; ++step) lesson.quiet_check("after a step", held_square, reference_square);
  lesson.sum_up_checks("all steps");
  lesson.check_numbers("the figures", {{"a", 1}, {"b", right ? 2 : 3}}, {{"a", 1}, {"b", 2}});
  lesson.cost([right](const RankInfo& rank) {
    Prediction prediction = predicted(rank);
    if (!right && rank.place.rank == 1) prediction.peak_elements += 1000;
    if (!right) prediction.ledger.add("tp", CollectiveKind::send, ElementType::bfloat16, 2, {6, 0, 2, 0});
    return prediction;
  });
  all_lines += "exit code " + std::to_string(lesson.answer("it prints them.")) + "\n";
}

}  // namespace

TEST_CASE("Lesson: every line of its screen, right and wrong, is the one that is kept") {
  Options wrong = in_memory(Grid().dp(2), 1);
  wrong.bug = "off_by_one";
  muonwalk::testing::expect_golden("lesson_screens.txt",
                                   screen_of([] { whole_lesson(in_memory(Grid().dp(2).tp(2), 1)); }) + "\n" +
                                       screen_of([&] { whole_lesson(wrong, false); }));
}

TEST_CASE("Lesson: with less or more detail, of one rank, or without a number of its own") {
  const auto whole = [](const Grid& grid, int verbose) {
    return screen_of([&] { whole_lesson(in_memory(grid, verbose)); });
  };
  const std::string brief = whole(Grid().dp(2), 0), full = whole(Grid().dp(2), 2), alone = whole(Grid(), 1);
  CHECK(brief.find("check   the squares") == 0);
  CHECK(brief.find("\ncheck   the figures") != std::string::npos);
  CHECK(brief.find("cost") == std::string::npos);
  CHECK(full.find("\nthe plan of the ranks\nin two lines\nsome words\n") != std::string::npos);
  CHECK(full.find("digest ") != std::string::npos);
  CHECK(alone.find("1 fiber through memory") != std::string::npos);
  CHECK(alone.find("check   the squares: 1 rank equals the reference") != std::string::npos);
  const std::string nameless = screen_of([] {
    LessonInfo info = screen_info();
    info.name = "a_program";
    info.question.clear();
    Lesson<Held> lesson(info, in_memory(Grid().dp(3).pp(2), 1));
    lesson.say("words");
  });
  CHECK(nameless ==
        "All lines                                        dp 3 × tp 1 × pp 2 · 6 fibers through memory · "
        "fp32\n\nwords\n");
}

TEST_CASE("Lesson: an interrupted run says where it stops and answers nothing; without an answer it goes on") {
  const std::string interrupted = screen_of([] {
    Options options = in_memory(Grid().dp(2), 0);
    options.set_up.stops = std::make_shared<StopRequest>();
    Lesson<Held> lesson(screen_info(), options);
    lesson.stop_when_asked();
    options.set_up.stops->asked() = 1;
    lesson.quiet_step("start", [](Rank& rank, Held&) { rank.decide_whether_to_stop(); });
    if (lesson.stops()) all_lines += "exit code " + std::to_string(lesson.interrupted("it stops here")) + "\n";
  });
  CHECK(interrupted == "! lesson_78_screen: it stops here\nexit code 3\n");
  CHECK(screen_of([] {
          Lesson<Held> lesson(screen_info(), in_memory(Grid().dp(2), 0));
          lesson.quiet_step("start", start);
          all_lines += "exit code " + std::to_string(lesson.answer("")) + "\n";
        }) == "exit code 0\n");
}

TEST_CASE("Lesson: what is asked of it that it can't do is a sentence") {
  const auto said = [](const Options& options, void (*ask)(Lesson<Held>&)) {
    return screen_of([&] {
      Lesson<Held> lesson(screen_info(), options);
      ask(lesson);
    });
  };
  const Options usual = in_memory(Grid(), 0);
  CHECK(said(usual, [](Lesson<Held>& lesson) { lesson.trace(); }) ==
        "thrown: there is no trace, because the run was not traced; set `traced` in the LessonInfo of the lesson to "
        "true\n");
  CHECK(said(usual, [](Lesson<Held>& lesson) {
          lesson.quiet_step("start", start);
          lesson.stop_when_asked();
        }) == "thrown: a lesson stops when asked from before its first step, or not at all\n");
  Options fault = usual;
  fault.fault = {Fault::Kind::raise, 0, 3};
  CHECK(said(fault, [](Lesson<Held>& lesson) {
          lesson.quiet_step("start", start);
          lesson.answer("it did not come.");
        }) == "thrown: --fault names step 3, but this run has only the steps 0 (the rendezvous) to 1\n");
  const auto other = [](Lesson<Held>& lesson) {
    lesson.instead("--other", [] {
      print_line("what --other does");
      return 0;
    });
  };
  CHECK(said(usual, other) == "what --other does\n");
  for (const auto& [option, member] : {std::pair("--record", &Options::record_file),

                                       {"--trace", &Options::trace_file}}) {
    Options options = usual;
    options.*member = "x.json";
    CHECK(said(options, other) == std::string("thrown: ") + option +
                                      " writes a file of the lesson's run, and --other does something else in its "
                                      "place; leave one of them out.\n");
  }
}

TEST_CASE("exit_code_of: what a program throws is one sentence on standard error, and 2 where its user can mend it") {
  const auto said = [](const std::function<int()>& program) {
    return screen_of([&] { all_lines += "exit code " + std::to_string(exit_code_of("a_program", program)) + "\n"; });
  };
  CHECK(said([] { return 5; }) == "exit code 5\n");
  CHECK(said([]() -> int { throw UsageError("--x is wrong"); }) == "! a_program: --x is wrong\nexit code 2\n");
  CHECK(said([]() -> int { throw RunError("it broke"); }) == "! a_program: it broke\nexit code 3\n");
  CHECK(said([]() -> int { throw std::bad_alloc(); }) ==
        "! a_program: there is not enough memory for what was asked; try smaller matrices, fewer ranks or fewer "
        "threads\nexit code 3\n");
  CHECK(said([]() -> int { throw 7; }) ==
        "! a_program: something was thrown that is not a std::exception, so nothing more is known of it; run it again, "
        "and report it if it comes again\nexit code 3\n");
}

TEST_CASE("Lesson: timings go to standard error, a line for each phase with the mean and the most of the ranks") {
  const auto timings = [](int verbose) {
    return screen_of([&] {
      Lesson<Held> lesson(screen_info(), in_memory(Grid().dp(4), verbose));
      for (int times = 0; times < 2; ++times)
        lesson.quiet_step("work", [](Rank& rank, Held&) {
          rank.phase("one of four sleeps");
          if (rank.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
          rank.phase("all sleep");
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        });
      all_lines.clear();
      lesson.timings();
    });
  };
  CHECK(timings(0).empty());
  const std::string text = timings(1);
  CAPTURE(text);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  REQUIRE(lines.size() == 4);  // and nothing of the memory, which fibers share
  CHECK(lines[0] == "! lesson_78_screen: measured on this machine, seconds per rank");
  CHECK(lines[1] == "!   phase                                 mean      most");
  const auto figures = [&](std::size_t line, const std::string& phase) {
    double mean = 0, most = 0;
    CHECK(lines[line].find("!   " + phase + "  ") == 0);
    CHECK(lines[line].size() == lines[1].size());
    REQUIRE(std::sscanf(lines[line].c_str() + 36, "%lf %lf", &mean, &most) == 2);
    CHECK(most >= 0.039);  // both times
    CHECK(mean >= most / 4 - 0.001);
    CHECK(mean <= most);
    return mean;
  };
  figures(2, "one of four sleeps");
  CHECK(figures(3, "all sleep") >= 0.039);
}
