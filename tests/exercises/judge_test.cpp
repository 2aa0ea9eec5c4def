// The judge, on a made-up exercise with ranks as fibers: every outcome, and what is said of it.

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/classroom/exercise.hpp"
#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// The made-up exercise: gather everybody's two elements over dp.
using GatherTwo = Flat(Communicator& dp, const Flat& shard);

Flat two_of(int r) { return {10.0f * static_cast<float>(r) + 1, 10.0f * static_cast<float>(r) + 2}; }

Task gather_two(GatherTwo* yours) {
  Task task;
  task.grids = {Grid().dp(2), Grid().dp(4)};
  task.prepare = [yours](Rank& rank) -> Answer {
    rank.dp().barrier();  // a call that prepares the input is not the reader's
    const Flat ballast(1000);
    const Flat shard = two_of(rank.place.dp);
    return [=, &rank] { return named(yours(rank.dp(), shard), "all"); };
  };
  task.reference = [](const RankInfo& info) {
    Flat all;
    for (int r = 0; r < info.grid.dp(); ++r)
      for (const float value : two_of(r)) all.push_back(value);
    return named(all, "all");
  };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    plan.take(2 * info.grid.dp(), "all");
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, 2, 2 * info.grid.dp());
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    return std::vector<Look>{{"my own two", Matrix(1, 2, two_of(info.place.dp))}};
  };
  return task;
}

Flat right(Communicator& dp, const Flat& shard) { return dp.all_gather(shard); }

struct Judged {
  Outcome outcome;
  std::string words;
  bool says(const std::string& what) const { return words.find(what) != std::string::npos; }
};

Judged judged(const Task& task) {
  JudgeOptions options;
  options.world = WorldKind::fibers;
  const Verdict verdict = judge("gather_two", task, options);
  CHECK(verdict.solved() == (verdict.outcome == Outcome::solved));
  Judged result{verdict.outcome, ""};
  for (const std::string& line : verdict.lines) result.words += line + "\n";
  INFO(result.words);
  return result;
}
Judged judged(GatherTwo* yours) { return judged(gather_two(yours)); }

}  // namespace

TEST_CASE("what is right is solved, in all layouts, and what it took is said") {
  const Judged result = judged(right);
  CHECK(result.outcome == Outcome::solved);
  CHECK(result.says("dp 2 × tp 1     ✔   8 elements, bit for bit · 8 B sent · 4 elements held"));
  CHECK(result.says("dp 4 × tp 1     ✔   32 elements, bit for bit · 24 B sent · 8 elements held"));
}

TEST_CASE("wrong values: the rank, the element, and what they look like") {
  const Judged one_rank = judged([](Communicator& dp, const Flat& shard) {
    Flat all = dp.all_gather(shard);
    if (dp.rank() == 3) all[1] = 7;
    return all;
  });
  CHECK(one_rank.outcome == Outcome::wrong_values);
  CHECK(one_rank.says("dp 2 × tp 1     ✔"));
  CHECK(one_rank.says("dp 4 × tp 1     ✘   wrong values"));
  CHECK(one_rank.says("rank 3  dp 3, all row 0 column 1"));
  CHECK(!one_rank.says("looks like"));
  CHECK(!one_rank.says("ULP"));  // 7 and 2 are far apart
  const Judged nearly = judged([](Communicator& dp, const Flat& shard) {
    Flat all = dp.all_gather(shard);
    all[1] = 2.0000002f;
    return all;
  });
  CHECK(nearly.says("1 ULP apart"));

  const Judged own = judged([](Communicator& dp, const Flat& shard) {
    dp.all_gather(shard);
    return shard;
  });
  CHECK(own.says("what it looks like: It is my own two."));
}

TEST_CASE("a count that a float would round is told to the byte") {
  const auto one_byte_too_many = [](Communicator& dp, const Flat& shard) {
    const std::vector<std::byte> mine((std::size_t{1} << 24) + 1);
    std::vector<std::byte> theirs(mine.size());
    const int peer = dp.rank() ^ 1;
    Transfer out = dp.isend(mine.data(), Index(mine.size()), peer);
    dp.recv(theirs.data(), Index(theirs.size()), peer);
    out.wait();
    return right(dp, shard);
  };
  const Judged result = judged(+one_byte_too_many);
  CHECK(result.outcome == Outcome::too_many_bytes);
  CHECK(result.says("sends 16,777,225 B; 8 B would do"));
}

TEST_CASE("a result that another rank should have is recognized") {
  Task task = gather_two([](Communicator& dp, const Flat&) { return two_of((dp.rank() + 1) % dp.size()); });
  task.reference = [](const RankInfo& info) { return named(two_of(info.place.dp), "mine"); };
  const Judged result = judged(task);
  CHECK(result.outcome == Outcome::wrong_values);
  CHECK(result.says("holds all where mine belongs"));
  CHECK(!result.says("looks like"));
  task.prepare = [](Rank& rank) -> Answer {
    return [&rank] { return named(two_of((rank.place.dp + 1) % rank.grid.dp()), "mine"); };
  };
  CHECK(judged(task).says("It is what rank 1  dp 1 should have."));
}

TEST_CASE("right bits are not enough") {
  const auto twice = [](Communicator& dp, const Flat& shard) {
    dp.all_gather(shard);
    return dp.all_gather(shard);
  };
  const Judged bytes = judged(+twice);
  CHECK(bytes.outcome == Outcome::too_many_bytes);
  CHECK(bytes.says("rank 0  dp 0 sends 16 B; 8 B would do"));
  CHECK(bytes.says("call  planned"));

  const auto messages = [](Communicator& dp, const Flat& shard) {
    Flat all(2 * dp.size());
    for (int r = 0; r < dp.size(); ++r) {
      if (r == dp.rank()) all[2 * r] = shard[0], all[2 * r + 1] = shard[1];
      if (r == dp.rank()) continue;
      Transfer sent = dp.isend(shard.data(), 2, r);
      dp.recv(&all[2 * r], 2, r);
      sent.wait();
    }
    return all;
  };
  const Judged calls = judged(+messages);
  CHECK(calls.outcome == Outcome::other_calls);
  CHECK(calls.says("sends 8 B, as planned, but in other calls"));
  CHECK(calls.says("dp all_gather of float32, 2 in, 4 out"));
  CHECK(calls.says("dp send of float32, 2 in, 0 out, peer 1"));

  const Judged many = judged([](Communicator& dp, const Flat& shard) {
    Flat all = dp.all_gather(shard);
    for (int i = 0; i < 15; ++i) dp.barrier();
    return all;
  });
  CHECK(many.says("1     dp all_gather of float32, 2 in, 4 out  the same\n"));
  CHECK(many.says("…     1 call in all                          16 calls in all\n"));

  const Judged memory = judged([](Communicator& dp, const Flat& shard) {
    const Flat more(5);
    return dp.all_gather(shard);
  });
  CHECK(memory.outcome == Outcome::peak_too_high);
  CHECK(memory.says("holds up to 9 elements besides its input; 4 would do"));

  // Where the design is the reader's own, calls may be others, but not more bytes.
  Task free = gather_two(+messages);
  free.own_design = true;
  CHECK(judged(free).outcome == Outcome::solved);
  free = gather_two(+twice);
  free.own_design = true;
  CHECK(judged(free).outcome == Outcome::too_many_bytes);
}

TEST_CASE("what never comes to an end, and what throws") {
  const auto all_send_first = [](Communicator& dp, const Flat& shard) {
    Flat all(2 * dp.size());
    dp.send(shard.data(), 2, (dp.rank() + 1) % dp.size());
    dp.recv(all.data(), 2, (dp.rank() + dp.size() - 1) % dp.size());
    return all;
  };
  const Judged deadlock = judged(gather_two(+all_send_first));
  CHECK(deadlock.outcome == Outcome::stood_still);
  CHECK(deadlock.says("every message needs both ends"));
  CHECK(deadlock.says("\n  Every rank of the group has to make the same collective calls"));
  const Judged left =
      judged([](Communicator& dp, const Flat& shard) { return dp.rank() == 1 ? shard : dp.all_gather(shard); });
  CHECK(left.outcome == Outcome::stood_still);
  CHECK(left.says("rank 0 waits in all_gather for rank 1; rank 1 has returned."));
  const Judged thrown = judged([](Communicator&, const Flat&) -> Flat { throw std::runtime_error("not today"); });
  CHECK(thrown.outcome == Outcome::threw);
  CHECK(thrown.says("not today."));
  CHECK(thrown.says("in gather_two"));
  CHECK(!thrown.says("in step"));
}

TEST_CASE("what breaks before the reader's function is not the reader's") {
  Task task = gather_two(right);
  task.prepare = [](Rank&) -> Answer { throw std::runtime_error("no input"); };
  CHECK_THROWS_AS(judged(task), RunError);
}

TEST_CASE("exercises are found by name, and take functions of one type alone") {
  REQUIRE(add_exercise("lesson_99_made_up", "gather_two", gather_two));
  JudgeOptions options;
  options.world = WorldKind::fibers;
  CHECK(judge("lesson_99_made_up/gather_two", right, options).solved());
  using Other = Flat(Communicator&);
  CHECK_THROWS_WITH_AS(
      judge("lesson_99_made_up/gather_two", static_cast<Other*>([](Communicator&) { return Flat(); }), options),
      doctest::Contains("does not have the type"), UsageError);
  CHECK_THROWS_WITH_AS(find_exercise("lesson_99_made_up/nothing"),
                       doctest::Contains("there are: lesson_99_made_up/gather_two"), UsageError);
}

TEST_CASE("calls over any group, of any type, are told as they were made") {
  Task task;
  task.grids = {Grid().dp(2).tp(2).pp(2)};
  task.prepare = [](Rank& rank) -> Answer {
    return [&rank] {
      const FlatOf<bfloat16> halves(3);
      rank.pp().all_reduce(halves);
      rank.tp().barrier();
      Flat two(2, 1.0f);
      rank.dp().broadcast(two.data(), 2, 1);
      return named(two, "two");
    };
  };
  task.reference = [](const RankInfo&) { return named(Flat(2, 1.0f), "two"); };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    plan.take(8, "room");
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, 1000, 2000);
    return plan;
  };
  const Judged result = judged(task);
  CHECK(result.outcome == Outcome::other_calls);
  std::string words = result.words;
  const auto line_with = [&](const std::string& what) {
    const std::size_t at = words.find(what);
    if (at == std::string::npos) return std::string("(none)");
    const std::size_t begin = words.rfind('\n', at) + 1;
    return words.substr(begin, words.find('\n', at) - begin);
  };
  CHECK(line_with("sends") == "  rank 0  dp 0 tp 0 pp 0 sends 6 B, and not 4,000 B as planned, in other calls:");
  CHECK(line_with("  1  ") ==
        "  1     dp all_gather of float32, 1000 in, 2000 out  pp all_reduce of bfloat16, 3 in, 3 out");
  CHECK(line_with("  2  ") == "  2     –                                            tp barrier");
  CHECK(line_with("  3  ").find("dp broadcast of float32, 2 in, 2 out") != std::string::npos);
}
