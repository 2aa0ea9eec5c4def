// The step that gathers while it computes, by plan: whatever the schedule, the messages and FLOPs of the plain step;
// and the posted gather itself.
#include "lessons/lesson_17_overlap/overlap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "src/optim/plan.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/sentence_of.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

const Schedule kAllSchedules[] = {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined};

}  // namespace

TEST_CASE(
    "overlapped plan: each bucket is posted once, then waited for, and as many are under way as the schedule says") {
  std::vector<Parameter> parameters;
  LayoutOptions options;
  options.bucket_capacity = 1;  // a bucket for each matrix
  for (int buckets = 1; buckets <= 7; ++buckets) {
    parameters.push_back({"w" + std::to_string(buckets), {16, 16}});
    const Layout layout = plan_layout(parameters, Grid().dp(2), options);
    for (const Schedule schedule : kAllSchedules) {
      CAPTURE(buckets);
      const Plan plan = overlapped_plan(layout, layout.grid.place(0), {}, schedule);
      int posted = 0, waited = 0, most = 0;
      for (const Operation& operation : plan.operations)
        if (const Work* work = std::get_if<Work>(&operation)) {
          posted += work->phase == phases::dp_gather;
          waited += work->phase == phases::await_gather;
          REQUIRE(waited <= posted);
          most = std::max(most, posted - waited);
          if (work->phase == phases::orthogonalize) REQUIRE(work->parameter < waited);
        }
      CHECK(posted == buckets);
      CHECK(waited == buckets);
      const int ahead = schedule == Schedule::all_at_once ? buckets : schedule == Schedule::pipelined ? 2 : 1;
      CHECK(most == std::min(ahead, buckets));
    }
  }
}

TEST_CASE("overlapped plan: any layout, every schedule: the bytes over dp and tp and the FLOPs of the plain step") {
  int own_nothing = 0, several = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      INFO(c.text());
      const Layout layout = c.layout();
      for (const Buffer& buffer : layout.buffers) several += buffer.buckets.size() > 1;
      for (const Schedule schedule : kAllSchedules)
        for (int r = 0; r < c.grid.size(); ++r) {
          const Place place = c.grid.place(r);
          const Plan plan = overlapped_plan(layout, place, c.settings, schedule);
          const Plan plain = muon_plan(layout, place, c.settings);
          for (const char* group : {"dp", "tp"}) REQUIRE(ledger_of(plan).total(group) == ledger_of(plain).total(group));
          REQUIRE(flops(plan) == flops(plain));
          Index left = 0;  // what is held in the end is what was held at first
          for (const Operation& operation : plan.operations)
            if (const Memory* memory = std::get_if<Memory>(&operation)) left += memory->elements;
          for (const Memory& held : held_between_steps(plan)) left -= held.elements;
          REQUIRE(left == 0);
          own_nothing += layout.shard_elements(place.dp) == 0;
        }
    }
  for (const int seen : {own_nothing, several}) CHECK(seen > 0);
}

TEST_CASE("overlapped plan: the peak holds one bucket, two, or all of them at a time") {
  // Four buckets of one matrix each, on two ranks: nothing else differs between the schedules.
  std::vector<Parameter> parameters;
  for (const char* name : {"a", "b", "c", "d"}) parameters.push_back({name, {16, 16}});
  LayoutOptions options;
  options.bucket_capacity = 1;
  const Layout layout = plan_layout(parameters, Grid().dp(2), options);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const MuonSettings settings = muon_settings(precision, 1, Products::eigen);
    const auto peak = [&](Schedule schedule) {
      return peak_elements(overlapped_plan(layout, layout.grid.place(0), settings, schedule));
    };
    // A bucket more is 256 elements; but while a rank works on bucket 0, the updates of the two or three buckets that
    // have not been posted are 128 each.
    CHECK(peak(Schedule::pipelined) - peak(Schedule::in_sequence) == 256 - 128);
    CHECK(peak(Schedule::all_at_once) - peak(Schedule::in_sequence) == 3 * (256 - 128));
  }
}

TEST_CASE("posted gather: any counts, also of ranks that own nothing: what dp_gather returns, and as many messages") {
  for (int size = 1; size <= 5; ++size)
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (int seed = 0; seed < 12; ++seed) {
        std::vector<Index> counts;
        for (int rank = 0; rank < size; ++rank)
          counts.push_back((seed * 7 + rank * rank * 5) % 4 == 0 ? 0 : seed + rank);
        std::vector<std::string> wrong(static_cast<std::size_t>(size));
        run_ranks(Grid().dp(size), [&](TestRank& rank) {
          Flat shard(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank.place.dp)]));
          for (std::size_t i = 0; i < shard.size(); ++i) shard[i] = 1.0f / static_cast<float>(3 + i) + rank.place.dp;
          const Flat expected = dp_gather(rank.dp, shard, counts, precision);
          const Traffic before = rank.ledger.total();
          PostedGather first = start_dp_gather(rank.dp, shard, counts, precision);
          PostedGather second = start_dp_gather(rank.dp, shard, counts, precision);  // both under way
          std::swap(first, second);
          const Flat b = second.wait(), a = first.wait();
          std::string& complaint = wrong[static_cast<std::size_t>(rank.place.dp)];
          if (a != expected || b != expected) complaint = "other values";
          const Traffic both = rank.ledger.total() - before;
          if (both != before + before) complaint = "other traffic";
        });
        for (const std::string& each : wrong) CHECK(each == "");
      }
}

TEST_CASE("overlap: what does not go together is refused, and a gather that nobody waits for breaks the group") {
  MuonSettings summed;
  summed.summed_gradients = true;
  const Layout layout = random_case(3).layout();
  CHECK(sentence_of([&] {
          overlapped_plan(layout, layout.grid.place(0), summed, Schedule::pipelined);
        }).rfind("overlapped_plan was told that gradients are summed before it begins", 0) == 0);
  std::vector<std::string> filled(2), broken(2);
  run_ranks(Grid().dp(2), [&](TestRank& rank) {
    const auto r = static_cast<std::size_t>(rank.place.rank);
    filled[r] = sentence_of([&] { PostedGather(rank.dp, {4, 4}, Precision::bf16).fill(Flat(5)); });
    try {
      // Whoever comes first breaks the group for the other as well.
      { const PostedGather dropped = start_dp_gather(rank.dp, Flat(4), {4, 4}, Precision::fp32); }
      rank.dp.barrier();
    } catch (const std::exception& error) {
      broken[r] = error.what();
    }
  });
  for (const std::string& sentence : filled)
    CHECK(sentence ==
          "a gather was to be filled with a shard of 5 elements, but this rank owns 4 of the bucket; give it what "
          "dp_slice says.");
  for (const std::string& sentence : broken) CHECK(sentence.find("without waiting") != std::string::npos);
}
