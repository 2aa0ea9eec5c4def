// The same steps on processes over Gloo and on threads through memory have to leave the same bits.

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/ranks/world.hpp"
#include "sim/transport/tcp_sockets.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"
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
                                      {"threads through memory", WorldKind::threads, TransportKind::memory}};

template <class T>
void keep(Local& local, const std::string& name, const FlatOf<T>& values) {
  Flat floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  const Index count = static_cast<Index>(floats.size());
  local.results.push_back({name, Matrix(1, count, std::move(floats)), 0, 0});
}

// Values of very different sizes, so that every order of a sum gives other bits; each rank has its own.
template <class T>
FlatOf<T> values_of(Rank& rank, Index count, unsigned salt) {
  std::mt19937 random(static_cast<unsigned>(rank.seed) * 7919u + static_cast<unsigned>(rank.rank()) * 104729u + salt);
  FlatOf<T> values;
  for (Index i = 0; i < count; ++i) {
    const float magnitude = std::ldexp(1.0f, static_cast<int>(random() % 40) - 20);
    values.push_back(T(magnitude * (static_cast<float>(random() % 20001) / 10000.0f - 1.0f)));
  }
  return values;
}

template <class T>
void every_collective(Rank& rank, Local& local, const std::string& type) {
  for (const char* group_name : {"dp", "tp", "pp"}) {
    Communicator& group = rank.group(group_name);
    const std::string name = type + " " + group.group() + " ";
    const int n = group.size();
    const std::size_t size = static_cast<std::size_t>(n);
    for (Index count : {1, 7, 3000}) {
      group.barrier();
      keep(local, name + "all_gather", group.all_gather(values_of<T>(rank, count, 1)));
      keep(local, name + "reduce_scatter", group.reduce_scatter(values_of<T>(rank, count * n, 2)));
      keep(local, name + "all_reduce", group.all_reduce(values_of<T>(rank, count, 3)));
      FlatOf<T> told = values_of<T>(rank, count, 4);
      group.broadcast(told.data(), count, n - 1);
      keep(local, name + "broadcast", told);

      std::vector<Index> shards(size), out_counts(size), in_counts(size);
      Index all = 0, out_all = 0, in_all = 0;
      for (int r = 0; r < n; ++r) {
        const auto at = static_cast<std::size_t>(r);
        all += shards[at] = count + r;
        out_all += out_counts[at] = count + group.rank() * 2 + r;  // what rank a sends to b is what b expects from a
        in_all += in_counts[at] = count + r * 2 + group.rank();
      }
      FlatOf<T> gathered(static_cast<std::size_t>(all)), exchanged(static_cast<std::size_t>(in_all));
      group.all_gather_v(values_of<T>(rank, count + group.rank(), 5).data(), shards, gathered.data());
      keep(local, name + "all_gather_v", gathered);
      group.all_to_all_v(values_of<T>(rank, out_all, 6).data(), out_counts, exchanged.data(), in_counts);
      keep(local, name + "all_to_all_v", exchanged);

      FlatOf<T> passed = values_of<T>(rank, count, 7);  // along the line of ranks
      if (group.rank() > 0) group.recv(passed.data(), count, group.rank() - 1);
      if (group.rank() + 1 < n) group.send(passed.data(), count, group.rank() + 1);
      keep(local, name + "passed on", passed);
    }
  }
}

std::vector<std::vector<NamedMatrix>> results_in(const WorldUnderTest& world, const Grid& grid, std::uint64_t seed) {
  LessonInfo info;
  info.name = "lesson_77_worlds";
  info.title = "Worlds";
  Options options;
  options.grid = grid;
  options.world = world.kind;
  options.transport = world.transport;
  options.seed = seed;
  options.verbose = 0;
  Lesson<Local> lesson(info, options);
  lesson.step("float32", [](Rank& rank, Local& local) { every_collective<float>(rank, local, "float32"); });
  lesson.step("bfloat16", [](Rank& rank, Local& local) { every_collective<bfloat16>(rank, local, "bfloat16"); });
  return lesson.collect(&Local::results);  // a rank that is a process ends here, with the lesson
}

}  // namespace

TEST_CASE("processes over Gloo and threads through memory: every collective leaves the same bits on every rank") {
  std::random_device device;
  const std::uint64_t seed = device();
  CAPTURE(seed);
  const std::vector<Grid> grids = {Grid(),       Grid().dp(2),       Grid().tp(3),
                                   Grid().dp(5), Grid().dp(4).tp(2), Grid().dp(2).tp(2).pp(2)};
  std::vector<std::vector<std::vector<NamedMatrix>>> wanted;
  testing::printed([&] {
    for (const Grid& grid : grids) wanted.push_back(results_in(kWorlds[0], grid, seed));
    for (std::size_t g = 0; g < grids.size(); ++g) {
      CAPTURE(grids[g].text());
      const auto found = results_in(kWorlds[1], grids[g], seed);
      REQUIRE(static_cast<int>(wanted[g].size()) == grids[g].size());
      REQUIRE(found.size() == wanted[g].size());
      for (std::size_t rank = 0; rank < found.size(); ++rank) {
        CAPTURE(rank);
        REQUIRE(wanted[g][rank].size() == 126);  // 2 types × 3 groups × 3 sizes × 7 calls
        REQUIRE(found[rank].size() == wanted[g][rank].size());
        for (std::size_t i = 0; i < found[rank].size(); ++i) {
          CAPTURE(found[rank][i].name);
          CHECK(found[rank][i].name == wanted[g][rank][i].name);
          CHECK(same_bits(found[rank][i].matrix, wanted[g][rank][i].matrix));
        }
      }
    }
  });
}

namespace {

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

TEST_CASE("threads: when a rank fails, the others see its connections closed and do not wait for the timeout") {
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
