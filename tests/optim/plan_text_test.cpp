// How a plan is printed: units, names, and what is folded, at their limits.
#include <doctest/doctest.h>

#include <string>

#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;

namespace {

// The lines of a plan on one rank whose operations are these.
std::string printed(const std::vector<Operation>& operations,
                    const std::vector<Parameter>& parameters = {{"w", {4, 4}}}) {
  const Layout layout = plan_layout(parameters, Grid());
  return "\n" + plan_text(Plan{layout.grid, layout.grid.place(0), operations}, layout);
}

}  // namespace

TEST_CASE("plan_text: FLOPs in the unit that fits, from the first number that does") {
  CHECK(printed({Work{"a", -1, {1, 5}, 0}, Work{"b", -1, {2, 5}, 1}, Work{"c", -1, {1, 5}, 999999},
                 Work{"d", -1, {1, 5}, 1e6}, Work{"e", -1, {1, 5}, 999.99e6}, Work{"f", -1, {1, 5}, 1e9},
                 Work{"g", -1, {1, 5}, 2.345e12}}) == R"(
1  a   5
2  b  10        1 FLOP
3  c   5  999,999 FLOP
4  d   5    1.00 MFLOP
5  e   5  999.99 MFLOP
6  f   5    1.00 GFLOP
7  g   5 2345.00 GFLOP
)");
}

TEST_CASE("plan_text: memory of nothing is held, and long names are cut where the column ends") {
  CHECK(printed({Memory{0, "nothing"}, Memory{1234, "all"}, Memory{-1, "one"}, Work{"a", 1, {3, 5}, 0},
                 Work{"a", 0, {3, 5}, 0}},
                {{"fourteen.bytes", {3, 5}}, {"fifteen.letters", {3, 5}}}) == R"(
1    hold nothing                    0     0 held
2    hold all                    1,234 1,234 held
3    free one                       -1 1,233 held
4  a              fiftee…letters 3 × 5
5  a              fourteen.bytes 3 × 5
)");
}

TEST_CASE("plan_text: what repeats without a matrix is folded without one, and calls alone with both their counts") {
  const Call call{"dp", CollectiveKind::broadcast, ElementType::bytes, 3, 3, 0};
  std::vector<Operation> operations;
  for (int times = 0; times < 7; ++times) operations.push_back(call);
  CHECK(printed(operations) == R"(
1    broadcast dp, bytes  3 0 B out
…  6 times more, as the 1 operation above
)");
}

TEST_CASE("plan_text: repetitions of up to 512 operations are found, and longer ones are written out") {
  for (const int length : {512, 513}) {
    std::vector<Operation> operations;
    for (int times = 0; times < 2; ++times)
      for (int i = 0; i < length; ++i) operations.push_back(Work{"a", -1, {1, i + 1}, 0});
    const std::string text = printed(operations);
    CAPTURE(length);
    CHECK((text.find("1 time more, as the 512 operations above\n") != std::string::npos) == (length == 512));
    CHECK((text.find("1026  a") != std::string::npos) == (length == 513));
  }
}

TEST_CASE("plan_text: kinds of several stages: each with the names of its own stage, and a heading that is broken") {
  const Grid grid = Grid().dp(2).pp(2);
  std::vector<Layout> stages = {plan_layout({{"front", {4, 4}}}, grid), plan_layout({{"back", {6, 4}}}, grid)};
  std::vector<PlanKind> kinds;
  for (const int pp : {0, 1}) {
    const Place place = grid.place(2 * pp);
    Plan plan{grid, place, {}};
    plan.take(1234567 + pp, "weights");
    plan.work(phases::apply, {2, 2}, 1.5e9, &stages[static_cast<std::size_t>(pp)].buffers[0].parameters[0]);
    plan.call("world", CollectiveKind::all_gather, ElementType::bfloat16, 5, 20);
    kinds.push_back({plan, {2 * pp, 2 * pp + 1}});
  }
  kinds[1].ranks = {2, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21};
  CHECK("\n" + plan_text(kinds, stages) == R"(
ranks 0–1: 3 operations, 30 B to others in 3 messages, 1.50 GFLOP, at most 1,234,567 elements held
1    hold weights                     1,234,567 1,234,567 held
2  apply                        front     2 × 2     1.50 GFLOP
3    all_gather world, bfloat16          5 → 20       30 B out

ranks 2–3, 5, 7, 9, 11, 13, 15, 17, 19, 21: 3 operations, 30 B to others in 3 messages, 1.50 GFLOP,
  at most 1,234,568 elements held
1    hold weights                    1,234,568 1,234,568 held
2  apply                        back     2 × 2     1.50 GFLOP
3    all_gather world, bfloat16         5 → 20       30 B out)");
}
