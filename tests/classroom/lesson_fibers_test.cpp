// The API of a lesson, called from code as a notebook does: ranks are fibers that talk through memory.

#include <doctest/doctest.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/fibers/fibers.hpp"
#include "sim/ranks/interrupt.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "tests/ranks/in_memory.hpp"
#include "tests/ranks/printed.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using muonwalk::testing::printed;

namespace {

struct Local {
  Matrix square;   // 2 × 2: its rank in every element
  Flat ranks_sum;  // 1 element: the sum of all ranks of the DP group
  std::vector<NamedMatrix> several;
  int steps_seen = 0;
};

LessonInfo test_info() {
  LessonInfo info;
  info.name = "lesson_77_api";
  info.title = "The API";
  info.question = "does it hold?";
  info.bugs = {{"off_by_one", "adds one"}};
  return info;
}

Options on_fibers(const Grid& grid, int verbose = 1) {
  Options options = muonwalk::testing::in_memory(grid);
  options.verbose = verbose;
  return options;
}

void fill(Rank& rank, Local& local) {
  local.square = Matrix(2, 2);
  for (Index at = 0; at < 4; ++at)
    local.square.data()[at] = static_cast<float>(rank.rank() + (rank.bug("off_by_one") ? 1 : 0));
  ++local.steps_seen;
  rank.show("square", local.square).whole();
  rank.say("filled");
}

void sum_over_dp(Rank& rank, Local& local) {
  local.ranks_sum = rank.dp().all_reduce(Flat(1, static_cast<float>(rank.rank())));
  ++local.steps_seen;
}

Matrix square_of(const RankInfo& rank) {
  Matrix square(2, 2);
  for (Index at = 0; at < 4; ++at) square.data()[at] = static_cast<float>(rank.place.rank);
  return square;
}

Flat sum_of(const RankInfo& rank) {
  float sum = 0;
  for (int dp = 0; dp < rank.grid.dp(); ++dp)
    sum += static_cast<float>(rank.grid.rank(dp, rank.place.tp, rank.place.pp));
  return Flat(1, sum);
}

Prediction predict(const RankInfo& rank) {
  Prediction prediction;
  prediction.ledger.add("dp", CollectiveKind::all_reduce, ElementType::float32, 1,
                        all_reduce_traffic(rank.place.dp, rank.grid.dp(), 1, ElementType::float32));
  return prediction;
}

}  // namespace

TEST_CASE("Lesson: steps, checks and costs hold on any grid; local and collect give what each rank holds") {
  for (const Grid& grid : {Grid(), Grid().dp(2), Grid().dp(4).tp(2), Grid().dp(3).tp(1).pp(2), Grid().tp(7)}) {
    CAPTURE(grid.text());
    const std::string text = printed([&] {
      Lesson<Local> lesson(test_info(), on_fibers(grid));
      CHECK(lesson.is_parent());
      lesson.step("fill", fill);
      lesson.step("sum", sum_over_dp);
      lesson.check("the squares", &Local::square, square_of);
      lesson.check("the sums", &Local::ranks_sum, sum_of);
      lesson.cost(predict);
      CHECK(lesson.all_equal());
      const auto all = lesson.collect(&Local::square);
      REQUIRE(static_cast<int>(all.size()) == grid.size());
      for (int rank = 0; rank < grid.size(); ++rank) {
        CHECK(lesson.local(rank).steps_seen == 2);
        REQUIRE(all[static_cast<std::size_t>(rank)].size() == 1);
        CHECK(same_bits(all[static_cast<std::size_t>(rank)][0].matrix, lesson.local(rank).square));
      }
      CHECK(lesson.answer("it does.") == 0);
    });
    CAPTURE(text);
    for (const char* words :
         {"Lesson 77 · The API", "Question: does it hold?", "Read:     lessons/lesson_77_api/lesson_77_api.cpp",
          "step 1 · fill", "step 2 · sum", "square", "filled", "bit for bit", "through memory", "Answer: it does.",
          "lesson_77_api: OK", "--bug off_by_one"})
      CHECK_MESSAGE(text.find(words) != std::string::npos, words);
  }
}

TEST_CASE("Lesson: a check of what differs says where, and the lesson fails") {
  for (int verbose : {0, 1}) {
    const std::string text = printed([&] {
      Options options = on_fibers(Grid().dp(2), verbose);
      options.bug = "off_by_one";
      Lesson<Local> lesson(test_info(), options);
      lesson.step("fill", fill);
      CHECK(lesson.all_equal());
      lesson.check("the squares", &Local::square, square_of);
      CHECK_FALSE(lesson.all_equal());
      CHECK(lesson.answer("it does not.") == 1);
    });
    CAPTURE(text);
    CHECK(text.find("first difference: rank 0  dp 0, the squares row 0 column 0") != std::string::npos);
    CHECK(text.find("8 of 8 elements differ") != std::string::npos);
    CHECK(text.find("lesson_77_api: FAILED") != std::string::npos);
  }
}

namespace {

std::vector<NamedMatrix> squares_held(const RankInfo&, const Local& local) { return {{"square", local.square, 0, 0}}; }
std::vector<NamedMatrix> squares_of(const RankInfo& rank) { return {{"square", square_of(rank), 0, 0}}; }

// Steps 1 to 4, each with its quiet check; rank 1 is wrong in those that are named.
std::string quietly_checked(const std::vector<int>& wrong, int expected_code) {
  return printed([&] {
    Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2)));
    for (int step = 1; step <= 4; ++step) {
      const bool is_wrong = std::find(wrong.begin(), wrong.end(), step) != wrong.end();
      lesson.quiet_step("fill", [&](Rank& rank, Local& local) {
        fill(rank, local);
        if (is_wrong && rank.rank() == 1) local.square(1, 0) = 100.0f + static_cast<float>(step);
      });
      lesson.quiet_check("after step " + std::to_string(step), squares_held, squares_of);
    }
    CHECK(lesson.all_equal() == wrong.empty());
    lesson.sum_up_checks("after steps 1–4");
    CHECK(lesson.answer("so it is.") == expected_code);
  });
}

}  // namespace

TEST_CASE("Lesson: quiet checks are one line where all hold; the first that does not is told at once, with its step") {
  const std::string held = quietly_checked({}, 0);
  CAPTURE(held);
  CHECK(held.find("check   after steps 1–4: 2 ranks equal the reference") != std::string::npos);
  CHECK(held.find("32 elements, bit for bit") != std::string::npos);  // four steps of two ranks with four elements
  CHECK(held.find("after step 1:") == std::string::npos);

  const std::string broken = quietly_checked({2, 4}, 1);
  CAPTURE(broken);
  const std::size_t first = broken.find("check   after step 2: 2 ranks differ from the reference");
  REQUIRE(first != std::string::npos);
  CHECK(broken.find("1 of 8 elements differ") != std::string::npos);
  CHECK(broken.find("first difference: rank 1  dp 1, square row 1 column 0", first) != std::string::npos);
  CHECK(broken.find("102 ", first) != std::string::npos);
  CHECK(broken.find("after step 4:") == std::string::npos);
  CHECK(broken.find("check   after steps 1–4: 2 of 4 differ from the reference", first) != std::string::npos);
  CHECK(broken.find("2 of 32 elements differ") != std::string::npos);
  CHECK(broken.find("bit for bit") == std::string::npos);
  CHECK(broken.find("lesson_77_api: FAILED") != std::string::npos);
}

TEST_CASE("Lesson: every line for quiet checks counts those since the line before, and nothing of earlier ones") {
  const std::string text = printed([&] {
    Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2)));
    for (const int checks : {2, 1, 3}) {
      for (int check = 1; check <= checks; ++check) {
        lesson.quiet_step("fill", fill);
        lesson.quiet_check("again", squares_held, squares_of);
      }
      lesson.sum_up_checks(std::to_string(checks) + " times");
    }
    for (const bool wrong : {true, false, true}) {
      lesson.quiet_step("fill", [&](Rank& rank, Local& local) {
        fill(rank, local);
        if (wrong && rank.rank() == 1) local.square(1, 0) = 100;
      });
      lesson.quiet_check("again", squares_held, squares_of);
      lesson.sum_up_checks(wrong ? "a wrong one" : "a right one");
    }
  });
  CAPTURE(text);
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);)
    if (line.find(" times: ") != std::string::npos || line.find(" one: ") != std::string::npos) lines.push_back(line);
  const std::pair<const char*, const char*> expected[] = {
      {"2 times: 2 ranks equal", " 16 elements, bit"},    {"1 times: 2 ranks equal", " 8 elements, bit"},
      {"3 times: 2 ranks equal", " 24 elements, bit"},    {"a wrong one: 1 of 1 differ", " 1 of 8 elements differ"},
      {"a right one: 2 ranks equal", " 8 elements, bit"}, {"a wrong one: 1 of 1 differ", " 1 of 8 elements differ"}};
  REQUIRE(lines.size() == std::size(expected));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(lines[i]);
    CHECK(lines[i].find(expected[i].first) != std::string::npos);
    CHECK(lines[i].find(expected[i].second) != std::string::npos);
  }
}

TEST_CASE("Lesson: a check that compares nothing is not a check") {
  printed([&] {
    Lesson<Local> lesson(test_info(), on_fibers(Grid()));
    lesson.sum_up_checks("no checks");
    CHECK_FALSE(lesson.all_equal());
  });
  const std::string text = printed([&] {
    Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2)));
    lesson.step("fill", fill);
    lesson.check("nothing", &Local::several, [](const RankInfo&) { return std::vector<NamedMatrix>(); });
    CHECK_FALSE(lesson.all_equal());
    CHECK(lesson.answer("nothing") == 1);
  });
  CHECK(text.find("nothing to compare") != std::string::npos);
}

TEST_CASE("Lesson: a cost that was predicted wrongly fails the lesson, with --verbose 0 as well") {
  for (int verbose : {0, 1}) {
    const std::string text = printed([&] {
      Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2), verbose));
      lesson.step("sum", sum_over_dp);
      lesson.cost([](const RankInfo&) { return Prediction(); });
      CHECK_FALSE(lesson.all_equal());
      CHECK(lesson.answer("it does not.") == 1);
    });
    CHECK(text.find("✘") != std::string::npos);
    CHECK(text.find("FAILED") != std::string::npos);
  }
}

TEST_CASE("Lesson: the peak of elements counts what steps hold, and not what checks copy") {
  for (Index peak : {3, 4, 5})
    printed([&] {
      Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2)));
      lesson.step("fill", fill);
      lesson.check("the squares", &Local::square, square_of);
      lesson.cost([peak](const RankInfo&) {
        Prediction prediction;
        prediction.peak_elements = peak;
        return prediction;
      });
      CHECK(lesson.all_equal() == (peak == 4));
    });
}

TEST_CASE("Lesson: what a rank throws is thrown to the caller, named; a UsageError as itself; the program goes on") {
  printed([&] {
    for (int culprit : {0, 3}) {
      CAPTURE(culprit);
      const auto throwing = [&](auto error) {
        return [&, error](Rank& rank, Local&) {
          rank.dp().barrier();
          if (rank.rank() == culprit) throw error;
          rank.dp().barrier();
          rank.tp().barrier();
        };
      };
      const std::string who = "rank " + std::to_string(culprit) + " failed in step 'trouble'";
      Lesson<Local> one(test_info(), on_fibers(Grid().dp(2).tp(2)));
      CHECK_THROWS_WITH_AS(one.step("trouble", throwing(std::runtime_error("it broke"))), (who + ": it broke").c_str(),
                           RunError);
      Lesson<Local> two(test_info(), on_fibers(Grid().dp(2).tp(2)));
      CHECK_THROWS_WITH_AS(two.step("trouble", throwing(UsageError("a bad input"))), "a bad input", UsageError);
      Lesson<Local> three(test_info(), on_fibers(Grid().dp(2).tp(2)));
      CHECK_THROWS_AS(three.step("trouble", throwing(42)), RunError);
      // A lesson that broke stays broken, and does not hang.
      CHECK_THROWS_AS(one.step("go on", [](Rank& rank, Local&) { rank.dp().barrier(); }), RunError);
    }
  });
}

TEST_CASE("Lesson: of several ranks that fail the first is named, and the cause before what followed from it") {
  printed([&] {
    const auto step_with = [](const std::function<void()>& of_the_first, const std::function<void()>& of_the_others) {
      return [=](Rank& rank, Local&) {
        if (rank.rank() == 2) of_the_first();
        try {
          rank.dp().barrier();  // which ends when rank 2 has failed
        } catch (const RunError&) {
          of_the_others();
        }
      };
    };
    const auto broke = [] { throw std::runtime_error("it broke"); };
    const auto broke_later = [] { throw std::runtime_error("it broke later"); };
    const auto lost_a_peer = [] { throw PeerLostError("somebody has left"); };
    Lesson<Local> one(test_info(), on_fibers(Grid().dp(4)));
    CHECK_THROWS_WITH_AS(one.step("trouble", step_with(broke, broke_later)),
                         "rank 2 failed in step 'trouble': it broke", RunError);
    Lesson<Local> two(test_info(), on_fibers(Grid().dp(4)));
    CHECK_THROWS_WITH_AS(two.step("trouble", step_with(broke, lost_a_peer)),
                         "rank 2 failed in step 'trouble': it broke", RunError);
  });
}

TEST_CASE("Lesson: numbers that are compared: one that differs, is missing or too many fails, and so does nothing") {
  const auto run = [](const NamedNumbers& read, const NamedNumbers& expected, int exit_code) {
    return printed([&] {
      Lesson<Local> lesson(test_info(), on_fibers(Grid()));
      lesson.check_numbers("the figures", read, expected);
      CHECK(lesson.all_equal() == (exit_code == 0));
      CHECK(lesson.answer("it does.") == exit_code);
    });
  };
  CHECK(run({{"a", 1}, {"b", 2}}, {{"a", 1}, {"b", 2}}, 0).find("the figures    ") != std::string::npos);
  CHECK(run({{"a", 1}, {"b", 3}}, {{"a", 1}, {"b", 2}}, 1).find("b: read 3, should be 2") != std::string::npos);
  CHECK(run({{"a", 1}}, {{"a", 1}, {"b", 2}}, 1).find("b: not read, should be 2") != std::string::npos);
  CHECK(run({{"a", 1}, {"b", 2}}, {{"a", 1}}, 1).find("b: read 2, should not be there") != std::string::npos);
  CHECK(run({{"a", 1}}, {}, 1).find("there is nothing to compare with") != std::string::npos);
  CHECK(run({}, {}, 1).find("there is nothing to compare with") != std::string::npos);
}

TEST_CASE("Lesson: what the reference, the prediction or the plan throws reaches the caller") {
  printed([&] {
    Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2)));
    CHECK_THROWS_AS(lesson.require([](const RankInfo&) { throw UsageError("--dp 2 can't be"); }), UsageError);
    lesson.step("fill", fill);
    const auto broken = [](const RankInfo&) -> Matrix { throw std::domain_error("no reference"); };
    CHECK_THROWS_AS(lesson.check("the squares", &Local::square, broken), std::domain_error);
    CHECK_THROWS_AS(lesson.cost([](const RankInfo&) -> Prediction { throw std::domain_error("no prediction"); }),
                    std::domain_error);
    lesson.check("the squares", &Local::square, square_of);  // and it goes on
    CHECK(lesson.all_equal());
  });
}

TEST_CASE("Lesson: options that can't work are refused before any rank exists") {
  Options options = on_fibers(Grid().dp(2));
  options.bug = "no_such_bug";
  CHECK_THROWS_AS(Lesson<Local>(test_info(), options), UsageError);
  options = on_fibers(Grid().dp(kMostFibers + 1));
  CHECK_THROWS_AS(Lesson<Local>(test_info(), options), UsageError);
  options = on_fibers(Grid().dp(kMostRanks + 1));
  options.world = WorldKind::processes;
  CHECK_THROWS_AS(Lesson<Local>(test_info(), options), UsageError);
}

TEST_CASE("Lesson: asked within a step, it stops after the first step that decides later, and stays stopped") {
  for (const int asked_in : {1, 2, 5}) {
    printed([&] {
      Options options = on_fibers(Grid().dp(4));
      options.set_up.stops = std::make_shared<muonwalk::sim::StopRequest>();
      Lesson<Local> lesson(test_info(), options);
      lesson.stop_when_asked();
      CHECK_FALSE(lesson.stops());
      int steps = 0;
      while (!lesson.stops()) {
        ++steps;
        lesson.quiet_step("train", [&](Rank& rank, Local& local) {
          rank.decide_whether_to_stop();
          sum_over_dp(rank, local);
          if (steps == asked_in && rank.rank() == 2) options.set_up.stops->asked() = 1;
        });
        lesson.quiet_step("save", sum_over_dp);  // has a number too, and decides nothing
      }
      CHECK(steps == asked_in + 1);
      lesson.step("sum", sum_over_dp);
      CHECK(lesson.stops());
      CHECK(lesson.interrupted("interrupted") == 3);
    });
  }
}

TEST_CASE("Lesson: without a request, or without a lesson that stops when asked, a decision changes nothing") {
  for (const bool asks : {false, true})
    printed([&] {
      Lesson<Local> lesson(test_info(), on_fibers(Grid().dp(2)));
      if (asks) lesson.stop_when_asked();
      for (int step = 1; step <= 3; ++step)
        lesson.quiet_step("train", [&](Rank& rank, Local&) {
          if (asks || rank.rank() == 1) rank.decide_whether_to_stop();
          rank.dp().barrier();
        });
      CHECK_FALSE(lesson.stops());
      CHECK_THROWS_AS(lesson.stop_when_asked(), std::logic_error);
      CHECK(lesson.answer("it does.") == 0);
    });
}

TEST_CASE("Lesson: two lessons side by side do not disturb each other") {
  printed([&] {
    Lesson<Local> one(test_info(), on_fibers(Grid().dp(2))), two(test_info(), on_fibers(Grid().dp(3)));
    one.step("sum", sum_over_dp);
    two.step("sum", sum_over_dp);
    one.check("the sums", &Local::ranks_sum, sum_of);
    two.check("the sums", &Local::ranks_sum, sum_of);
    one.cost(predict);
    two.cost(predict);
    CHECK(one.all_equal());
    CHECK(two.all_equal());
  });
}
