// Ranks as processes over Gloo and as fibers through memory: who is in a group, and what can't be. That their calls
// have the same bits, those of the serial oracle, is tested in tests/comm.

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/ranks/world.hpp"
#include "sim/transport/tcp_sockets.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
#include "tests/ranks/in_memory.hpp"
#include "tests/ranks/printed.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

struct Local {
  std::vector<NamedMatrix> results;
};

struct WorldUnderTest {
  const char* name;
  WorldKind kind;
  TransportKind transport;
};
// Processes come first: they are forked from this program, which may have no threads then.
constexpr WorldUnderTest kWorlds[] = {{"processes over Gloo", WorldKind::processes, TransportKind::gloo},
                                      {"fibers through memory", WorldKind::fibers, TransportKind::gloo}};

void keep(Local& local, const std::string& name, Flat values) {
  const Index count = static_cast<Index>(values.size());
  local.results.push_back({name, Matrix(1, count, std::move(values)), 0, 0});
}

// Every group of this rank tells who is in it, and then what the others answer when it has none.
void who_is_there(Rank& rank, Local& local) {
  for (const char* name : {"dp", "tp", "pp", "world", "dp × pp", "tp × pp", "dp × tp", "first and last stage",
                           "the corners", "pairs", "nobody's"}) {
    try {
      keep(local, name, rank.group(name).all_gather(Flat{static_cast<float>(rank.rank())}));
    } catch (const UsageError& error) {
      keep(local, error.what(), Flat{});
    }
  }
}

std::vector<std::vector<NamedMatrix>> members_in(const WorldUnderTest& world, const Grid& grid,
                                                 const std::vector<Group>& groups) {
  LessonInfo info;
  info.name = "lesson_78_groups";
  info.title = "Groups";
  info.groups = groups;
  Options options;
  options.grid = grid;
  options.world = world.kind;
  options.transport = world.transport;
  options.verbose = 0;
  Lesson<Local> lesson(info, options);
  lesson.step("who is there", who_is_there);
  return lesson.collect(&Local::results);
}

// The ranks that a group of this name has with this one, told once more: by the places of all others.
std::vector<int> expected_members(const Grid& grid, const std::vector<Group>& groups, const std::string& name,
                                  int rank) {
  for (const Group& group : groups)
    if (group.name == name && group.number_of(rank) >= 0) return group.ranks;
  std::vector<int> members;
  const Place mine = grid.place(rank);
  const auto at_an_end = [&](const Place& place) { return place.pp == 0 || place.pp == grid.pp() - 1; };
  const auto differ = [&](const char* coordinate) {
    return name == "world" || name.find(coordinate) != std::string::npos;
  };
  if (name == "pairs" || name == "the corners" || name == "nobody's") return {};
  for (int other = 0; other < grid.size(); ++other) {
    const Place its = grid.place(other);
    const bool ends = name == "first and last stage";
    if (ends ? its.dp == mine.dp && its.tp == mine.tp && at_an_end(its) && at_an_end(mine)
             : (differ("dp") || its.dp == mine.dp) && (differ("tp") || its.tp == mine.tp) &&
                   (differ("pp") || its.pp == mine.pp))
      members.push_back(other);
  }
  return members;
}

}  // namespace

TEST_CASE("groups by their names: those of the grid and any list of ranks connect their members, in every world") {
  const std::vector<Group> groups = {{"world", {}},
                                     {"dp × pp", {}},
                                     {"tp × pp", {}},
                                     {"dp × tp", {}},
                                     {"first and last stage", {}},
                                     {"the corners", {5, 0, 3}},
                                     {"pairs", {1, 2}},
                                     {"pairs", {4, 3}}};
  testing::printed([&] {
    for (const WorldUnderTest& world : kWorlds)
      for (const Grid& grid : {Grid().dp(2).tp(2).pp(2), Grid().dp(2).tp(1).pp(3), Grid().tp(6)}) {
        CAPTURE(world.name);
        CAPTURE(grid.text());
        const auto found = members_in(world, grid, groups);
        REQUIRE(static_cast<int>(found.size()) == grid.size());
        for (int rank = 0; rank < grid.size(); ++rank) {
          CAPTURE(rank);
          const auto& told = found[static_cast<std::size_t>(rank)];
          REQUIRE(told.size() == 11);
          for (const NamedMatrix& one : told) {
            CAPTURE(one.name);
            const bool member = one.matrix.size() > 0;
            const std::string name = one.name.substr(0, one.name.find(" of rank"));
            if (!member) {
              const bool unknown = one.name.find("nobody's") != std::string::npos;
              const std::string who = "rank " + std::to_string(rank) + " asked for the group \"";
              CHECK(one.name.find(who) == 0);
              CHECK(one.name.find(unknown ? "name it in LessonInfo::groups" : "is not in it") != std::string::npos);
              const std::string asked = one.name.substr(who.size(), one.name.find('"', who.size()) - who.size());
              CHECK(expected_members(grid, groups, asked, rank).empty());
              continue;
            }
            std::vector<int> ranks;
            for (Index i = 0; i < one.matrix.size(); ++i) ranks.push_back(static_cast<int>(one.matrix.data()[i]));
            CHECK(ranks == expected_members(grid, groups, name, rank));
          }
        }
      }
  });
}

#ifdef __linux__
TEST_CASE("processes: a byte that goes past the transport makes a cost differ that is right in all else") {
  testing::printed([&] {
    for (const int stray : {0, 1}) {
      LessonInfo info;
      info.name = "lesson_79_stray";
      info.title = "A stray byte";
      Options options;
      options.grid = Grid().dp(2);
      options.verbose = 0;
      Lesson<Local> lesson(info, options);
      lesson.step("sum", [stray](Rank& rank, Local&) {
        rank.dp().all_reduce(Flat(3000));
        rank.dp().barrier();
        if (rank.rank() == 1 && send(connected_tcp_sockets().at(0).descriptor, "stray", std::size_t(stray), 0) != stray)
          throw RunError("nothing could be sent");
      });
      lesson.cost([](const RankInfo& rank) {
        Prediction prediction;
        prediction.ledger.add("dp", CollectiveKind::all_reduce, ElementType::float32, 1,
                              all_reduce_traffic(rank.place.dp, 2, 3000, ElementType::float32));
        prediction.ledger.add("dp", CollectiveKind::barrier, ElementType::bytes, 1, barrier_traffic(2));
        return prediction;
      });
      CAPTURE(stray);
      if (lesson.is_parent()) CHECK(lesson.all_equal() == (stray == 0));
    }
  });
}
#endif

TEST_CASE("fibers: when a rank fails, the others see its connections closed") {
  LessonInfo info;
  info.name = "lesson_80_closed";
  info.title = "Closed";
  Options options;
  options.grid = Grid().dp(2).tp(2);
  options.world = kWorlds[1].kind;
  options.transport = kWorlds[1].transport;
  options.timeout_seconds = 3;
  options.verbose = 0;
  std::atomic<int> closed{0}, timed_out{0};
  const auto trouble = [&](Rank& rank, Local&) {
    try {
      rank.dp().barrier();
      rank.tp().barrier();
    } catch (const RunError&) {  // rank 0 has been quicker; the calls below meet the same
    }
    if (rank.rank() == 0) throw std::runtime_error("it broke");
    try {
      // Rank 3 shares no group with rank 0, and is woken by those that do.
      for (const char* group : {"dp", "tp"}) rank.group(group).all_reduce(Flat(2000));
    } catch (const TimeoutError&) {
      ++timed_out;
      throw;
    } catch (const RunError&) {
      ++closed;
      throw;
    }
  };
  testing::printed([&] {
    Lesson<Local> lesson(info, options);
    CHECK_THROWS_WITH_AS(lesson.step("trouble", trouble), "rank 0 failed in step 'trouble': it broke", RunError);
  });
  CHECK(closed == 3);
  CHECK(timed_out == 0);
}

TEST_CASE("groups that can't be are refused in a sentence before any rank starts") {
  const std::pair<std::vector<Group>, const char*> cases[] = {
      {{{"dq", {}}}, "a grid has no groups named \"dq\""},
      {{{"far", {0, 4}}}, "the group \"far\" is to have rank 4, but dp 4 × tp 1 has the ranks 0 to 3"},
      {{{"twice", {1, 2, 1}}}, "rank 1 is twice in groups named \"twice\""},
      {{{"both", {0, 1}}, {"both", {1, 2}}}, "rank 1 is twice in groups named \"both\""},
      {{{"dp", {0, 1}}}, "give it another name"}};
  for (const auto& [groups, words] : cases) {
    for (const WorldUnderTest& world : kWorlds) {
      Options options;
      options.grid = Grid().dp(4);
      options.world = world.kind;
      options.transport = world.transport;
      options.set_up.groups = groups;
      std::string sentence;
      try {
        start_world(options);
      } catch (const UsageError& error) {
        sentence = error.what();
      }
      CAPTURE(words);
      CHECK(sentence.find(words) != std::string::npos);
    }
  }
}

#ifdef __linux__
TEST_CASE("processes are refused, in a sentence, once the program has threads of its own") {
  std::mutex held;
  held.lock();
  std::thread other([&held] { const std::lock_guard<std::mutex> lock(held); });
  Options options;
  options.grid = Grid().dp(2);
  std::string sentence;
  try {
    start_world(options);
  } catch (const RunError& error) {
    sentence = error.what();
  }
  held.unlock();
  other.join();
  CHECK(sentence.find("before this program has threads, and it has 2") != std::string::npos);
  CHECK_NOTHROW(start_world(options));  // and they start again once the thread has ended
}
#endif

namespace {

// What rank 0 has found in each of 200 orders of turns: what rank 1 has sent, or what it left in memory that fibers
// happen to share, which is a race.
std::set<float> found_by_rank_0(bool race) {
  std::set<float> found;
  testing::printed([&] {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Options options = testing::in_memory(Grid().dp(3));
      options.verbose = 0;
      options.turns = seed;
      LessonInfo info;
      info.name = "lesson_80_race";
      info.title = "A race";
      Lesson<Local> lesson(info, options);
      float in_memory = 0;
      lesson.step("look", [&](Rank& rank, Local&) {
        rank.dp().barrier();
        if (rank.rank() == 1) {
          in_memory = 7;
          rank.dp().send(&in_memory, 1, 0);
        }
        if (rank.rank() != 0) return;
        const float read = in_memory;
        float sent = 0;
        rank.dp().recv(&sent, 1, 1);
        found.insert(race ? read : sent);
      });
    }
  });
  return found;
}

}  // namespace

TEST_CASE("turns: a rank that reads what another has not sent yet is found by the order of turns; a message never is") {
  CHECK(found_by_rank_0(false) == std::set<float>{7});
  CHECK(found_by_rank_0(true) == std::set<float>{0, 7});
}
