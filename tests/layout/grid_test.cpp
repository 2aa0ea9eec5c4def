#include "src/layout/grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

const char* const kNames[] = {"dp", "tp", "pp"};

using Lists = std::vector<std::vector<int>>;

Lists lists_of(const std::vector<Group>& groups) {
  Lists lists;
  for (const Group& group : groups) lists.push_back(group.ranks);
  return lists;
}

template <class Check>
void for_each_grid(const Check& check) {
  for (int dp = 1; dp <= 5; ++dp) {
    for (int tp = 1; tp <= 4; ++tp) {
      for (int pp = 1; pp <= 3; ++pp) {
        const Grid grid = Grid().dp(dp).tp(tp).pp(pp);
        INFO(grid.text());
        check(grid);
      }
    }
  }
}

}  // namespace

TEST_CASE("grid: ranks count up with tp fastest, then dp, then pp") {
  for_each_grid([](const Grid& grid) {
    int rank = 0;
    for (int pp = 0; pp < grid.pp(); ++pp) {
      for (int dp = 0; dp < grid.dp(); ++dp) {
        for (int tp = 0; tp < grid.tp(); ++tp) {
          CHECK(grid.rank(dp, tp, pp) == rank);
          const Place place = grid.place(rank);
          CHECK(place.rank == rank);
          CHECK(place.dp == dp);
          CHECK(place.tp == tp);
          CHECK(place.pp == pp);
          ++rank;
        }
      }
    }
    CHECK(rank == grid.size());
  });
}

TEST_CASE("grid: every rank is in exactly one group of each kind, which all its members agree on") {
  for_each_grid([](const Grid& grid) {
    for (const std::string name : {"dp", "tp", "pp", "dp × tp", "dp × pp", "tp × pp", "dp × tp × pp", "world"}) {
      std::vector<int> seen(grid.size(), 0);
      int lowest_before = -1;
      for (const auto& group : lists_of(grid.groups(name))) {
        CHECK(static_cast<int>(group.size()) == grid.size(name));
        CHECK(std::is_sorted(group.begin(), group.end()));
        CHECK(group.front() > lowest_before);
        lowest_before = group.front();
        for (const int rank : group) {
          ++seen[rank];
          CHECK(grid.group(name, rank).ranks == group);
          CHECK(grid.group(name, rank).name == name);
        }
      }
      CHECK(std::count(seen.begin(), seen.end(), 1) == grid.size());
    }
  });
}

TEST_CASE("grid: a group of several coordinates holds the ranks that are equal in the others") {
  for_each_grid([](const Grid& grid) {
    for (int rank = 0; rank < grid.size(); ++rank) {
      const Place mine = grid.place(rank);
      std::vector<int> dp_pp, tp_pp, dp_tp, all, ends;
      for (int other = 0; other < grid.size(); ++other) {
        const Place its = grid.place(other);
        if (its.tp == mine.tp) dp_pp.push_back(other);
        if (its.dp == mine.dp) tp_pp.push_back(other);
        if (its.pp == mine.pp) dp_tp.push_back(other);
        const auto is_end = [&](const Place& place) { return place.pp == 0 || place.pp + 1 == grid.pp(); };
        if (its.tp == mine.tp && its.dp == mine.dp && is_end(its) && is_end(mine)) ends.push_back(other);
        all.push_back(other);
      }
      CHECK(grid.group("dp × pp", rank).ranks == dp_pp);
      CHECK(grid.group("pp × dp", rank).ranks == dp_pp);
      CHECK(grid.group("tp × pp", rank).ranks == tp_pp);
      CHECK(grid.group("dp × tp", rank).ranks == dp_tp);
      CHECK(grid.group("world", rank).ranks == all);
      CHECK(grid.group("first and last stage", rank).ranks == ends);
      CHECK(grid.group("world", rank).number_of(rank) == rank);
      CHECK(grid.group("tp", rank).number_of(rank) == mine.tp);
      CHECK(grid.group("dp", rank).number_of(-1) == -1);
    }
  });
  CHECK(lists_of(Grid().tp(2).pp(3).groups("first and last stage")) == Lists{{0, 4}, {1, 5}});
}

TEST_CASE("grid: the name of a group that it does not have is refused in a sentence") {
  for (const std::string name :
       {"", "ep", "ep 0", "ep 2x", "dp / ep -2", "dq", "dp ×", "dp × dp", "dp x tp", "dp × tp × pp × dp", "World"}) {
    CAPTURE(name);
    CHECK(usage_error([&] { Grid().group(name, 0); }) ==
          "a grid has no groups named \"" + name +
              "\"; it has dp, tp, pp, products of them such as \"dp × pp\", world, first and last stage, \"ep 2\" and "
              "\"dp / ep 2\"");
  }
}

TEST_CASE("grid: EP groups are neighbours in dp, and across them are the ranks that hold the same experts") {
  const Grid grid = Grid().dp(4).tp(2).pp(2);
  CHECK(lists_of(grid.groups("ep 2")) == Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(lists_of(grid.groups("dp / ep 2")) ==
        Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}});
  CHECK(lists_of(grid.groups("ep 4")) == lists_of(grid.groups("dp")));
  CHECK(lists_of(grid.groups("dp / ep 1")) == lists_of(grid.groups("dp")));
  CHECK(usage_error([&] { grid.group("ep 3", 0); }) ==
        "--ep 3 does not divide --dp 4, but EP groups lie within the data-parallel ranks; try --ep 1 or --ep 4");
}

TEST_CASE("grid: sizes below 1 and grids too large to number are refused in a sentence") {
  CHECK(usage_error([] { Grid().dp(0); }) ==
        "--dp 0 is less than 1, but a grid has at least one rank along every dimension; try --dp 1");
  CHECK(usage_error([] { Grid().tp(-2); }) ==
        "--tp -2 is less than 1, but a grid has at least one rank along every dimension; try --tp 1");
  CHECK(usage_error([] { Grid().pp(0); }) ==
        "--pp 0 is less than 1, but a grid has at least one rank along every dimension; try --pp 1");
  CHECK(usage_error([] { Grid().dp(100000).tp(100000); }) ==
        "--tp 100000 makes a grid of 10000000000 ranks, more than can be numbered; try a smaller one");
  // Each dimension counts with the two others as they are, and with what it was before not at all.
  using Set = Grid& (Grid::*)(int);
  const Set set[] = {&Grid::dp, &Grid::tp, &Grid::pp};
  for (const Set last : set)
    for (const Set other : set) {
      if (other == last) continue;
      Grid grid;
      (grid.*other)(100000);
      const std::string sentence = usage_error([&] { (grid.*last)(30000); });
      CHECK(sentence.find(" 30000 makes a grid of 3000000000 ranks") != std::string::npos);
      (grid.*last)(20000);
      (grid.*last)(21000);
      CHECK(grid.size() == 2100000000);
    }
}

TEST_CASE("grid: a rank's label has the coordinates in which there are others") {
  CHECK(rank_label(Grid(), 0) == "rank 0");
  CHECK(rank_label(Grid().dp(2), 1) == "rank 1  dp 1");
  CHECK(rank_label(Grid().tp(3), 2) == "rank 2  tp 2");
  CHECK(rank_label(Grid().pp(2), 1) == "rank 1  pp 1");
  CHECK(rank_label(Grid().dp(3).tp(2).pp(2), 9) == "rank 9  dp 1 tp 1 pp 1");
  // Several, with what all of them share.
  for (const auto& [ranks, label] :
       std::vector<std::pair<std::vector<int>, std::string>>{{{0, 1, 2, 3, 4, 5, 6, 7}, "every rank"},
                                                             {{0, 1, 2, 3}, "ranks 0–3  pp 0"},
                                                             {{2, 3}, "ranks 2–3  dp 1 pp 0"},
                                                             {{1, 2}, "ranks 1–2  pp 0"},
                                                             {{3, 4}, "ranks 3–4"},
                                                             {{1, 3, 5, 7}, "ranks 1, 3, 5, 7  tp 1"},
                                                             {{1, 7}, "ranks 1, 7  tp 1"},
                                                             {{0, 1, 3, 6, 7}, "ranks 0, 1, …, 7"}})
    CHECK(ranks_label(Grid().dp(2).tp(2).pp(2), ranks) == label);
  CHECK(Grid().dp(3).pp(2).text() == "dp 3 × tp 1 × pp 2");
}

TEST_CASE("grid: as many ranks as an int can number, and not one more; what is refused changes nothing") {
  CHECK(Grid().dp(2147483647).size() == 2147483647);
  Grid grid = Grid().tp(32768).dp(65535);
  CHECK(usage_error([&] { grid.dp(65536); }) ==
        "--dp 65536 makes a grid of 2147483648 ranks, more than can be numbered; try a smaller one");
  CHECK(usage_error([&] { grid.pp(2); }) ==
        "--pp 2 makes a grid of 4294901760 ranks, more than can be numbered; try a smaller one");
  CHECK(usage_error([&] { grid.tp(0); }) ==
        "--tp 0 is less than 1, but a grid has at least one rank along every dimension; try --tp 1");
  CHECK(grid == Grid().dp(65535).tp(32768));
  CHECK(Grid().dp(5).size() == 5);
  CHECK(Grid().dp(5).size("dp") == 5);
  CHECK(Grid().dp(5).size("tp") == 1);
  CHECK(Grid().dp(5).pp(3).size("dp × pp") == 15);
}
