// The step that gathers while it computes: over random layouts, with every schedule, the bits of one process, and the
// plan call by call; and its parts.
#include "src/optim/overlapped_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include "tests/optim/rank_threads.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

const Schedule kSchedules[] = {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined};

MakeOptimizer overlapped(const Case& c, Schedule schedule) {
  return [c, schedule] { return std::make_unique<OverlappedMuon>(c.settings, schedule); };
}

// What a rank sends over dp, whatever the calls are called.
Traffic over_dp(const Plan& plan) { return ledger_of(plan).total("dp"); }

}  // namespace

TEST_CASE("moves_of: each bucket once, posted before it is waited for and waited for before it is worked on") {
  using Kind = BucketMove::Kind;
  for (const Schedule schedule : kSchedules)
    for (int buckets = 0; buckets <= 7; ++buckets) {
      const std::vector<BucketMove> moves = moves_of(schedule, buckets);
      CAPTURE(schedule_name(schedule));
      CAPTURE(buckets);
      REQUIRE(moves.size() == static_cast<std::size_t>(3 * buckets));
      std::map<int, int> done;  // by bucket: moves so far
      int under_way = 0, most = 0;
      for (const BucketMove& move : moves) {
        REQUIRE(static_cast<int>(move.kind) == done[move.bucket]++);
        under_way += move.kind == Kind::post ? 1 : move.kind == Kind::wait ? -1 : 0;
        most = std::max(most, under_way);
      }
      CHECK(most == (schedule == Schedule::all_at_once   ? buckets
                     : schedule == Schedule::in_sequence ? std::min(1, buckets)
                                                         : std::min(2, buckets)));
    }
  const std::vector<BucketMove> three = moves_of(Schedule::pipelined, 3);
  CHECK(three == std::vector<BucketMove>{{Kind::post, 0},
                                         {Kind::post, 1},
                                         {Kind::wait, 0},
                                         {Kind::work, 0},
                                         {Kind::post, 2},
                                         {Kind::wait, 1},
                                         {Kind::work, 1},
                                         {Kind::wait, 2},
                                         {Kind::work, 2}});
}

TEST_CASE("overlapped step: any layout, precision and engine, every schedule: serial bits, and the plan call by call") {
  int own_nothing = 0, larger_than_a_bucket = 0, bf16 = 0, chain = 0, several = 0, calls = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      c.settings.newton_schulz.threads = 1;
      if (seed % 2 == 0)
        c.settings.newton_schulz.products =
            c.settings.newton_schulz.products == Products::eigen ? Products::chain : Products::eigen;
      INFO(c.text());
      const Layout layout = c.layout();
      bf16 += c.settings.newton_schulz.precision == Precision::bf16;
      chain += c.settings.newton_schulz.products == Products::chain;
      for (const Parameter& each : c.parameters)
        larger_than_a_bucket += c.options.bucket_capacity > 0 && each.shape.size() > c.options.bucket_capacity;
      for (const Buffer& buffer : layout.buffers) several += buffer.buckets.size() > 1;
      const auto reference = reference_steps(c, OverlappedMuon(c.settings, Schedule::pipelined));
      for (const Schedule schedule : kSchedules) {
        CAPTURE(schedule_name(schedule));
        const auto ranks = record_steps(c, overlapped(c, schedule));
        for (int r = 0; r < c.grid.size(); ++r) {
          const Place place = c.grid.place(r);
          const Plan plan = OverlappedMuon(c.settings, schedule).plan(layout, place);
          for (int step = 0; step < c.steps; ++step) {
            const RecordedStep& recorded = ranks[r][step];
            REQUIRE(first_difference(c, place, recorded.slices, reference[step]) == "");
            REQUIRE(first_difference(plan, recorded) == "");
            calls += static_cast<int>(recorded.seen.size());
          }
          own_nothing += layout.shard_elements(place.dp) == 0;
          // The messages and bytes, and the FLOPs, are those of the step that waits for every gather.
          const Plan plain = muon_plan(layout, place, c.settings);
          REQUIRE(over_dp(plan) == over_dp(plain));
          REQUIRE(flops(plan) == flops(plain));
        }
      }
    }
  MESSAGE(calls << " phases and calls were compared; " << own_nothing << " times a rank owned nothing, "
                << larger_than_a_bucket << " matrices were larger than a bucket");
  for (const int seen : {own_nothing, larger_than_a_bucket, bf16, chain, several}) CHECK(seen > 0);
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

TEST_CASE(
    "overlapped step: what it does not do is refused in a sentence, and a gather nobody waits for breaks the group") {
  Case c;
  c.parameters = {{"a", {4, 4}}, {"b", {4, 4}}};
  c.grid = Grid().dp(2);
  const Layout layout = c.layout();
  std::vector<std::string> sentences(2), filled(2), broken(2);
  run_ranks(c.grid, [&](TestRank& rank) {
    MuonState state = initial_state(layout, pointers(c.weights()), rank.place);
    const Buckets gradients = pack_buckets(layout, pointers(c.gradients(0, rank.place.dp)), rank.place.tp);
    MuonSettings settings;
    settings.gather = Gather::cut_matrices;
    const auto r = static_cast<std::size_t>(rank.place.rank);
    try {
      overlapped_step({layout, rank.place, rank.dp, rank.tp}, settings, gradients, state, Schedule::pipelined);
    } catch (const std::invalid_argument& error) {
      sentences[r] = error.what();
    }
    try {
      PostedGather(rank.dp, {4, 4}, Precision::bf16).fill(Flat(5));
      sentences[r] = "was taken";
    } catch (const std::invalid_argument& error) {
      filled[r] = error.what();
    }
    try {
      // Whoever comes first breaks the group for the other as well.
      { const PostedGather dropped = start_dp_gather(rank.dp, Flat(4), {4, 4}, Precision::fp32); }
      rank.dp.barrier();
    } catch (const std::exception& error) {
      broken[r] = error.what();
    }
  });
  for (const std::string& sentence : sentences)
    CHECK(sentence ==
          "overlapped_step was asked to gather cut matrices alone, but it posts whole buckets; take full_step for "
          "that.");
  for (const std::string& sentence : filled)
    CHECK(sentence ==
          "a gather was to be filled with a shard of 5 elements, but this rank owns 4 of the bucket; give it what "
          "dp_slice says.");
  for (const std::string& sentence : broken) CHECK(sentence.find("without waiting") != std::string::npos);
  CHECK(OverlappedMuon(MuonSettings(), Schedule::in_sequence).name() == "Muon, gathers in sequence");
  CHECK(OverlappedMuon(MuonSettings(), Schedule::all_at_once).name() == "Muon, gathers all at once");
  CHECK(OverlappedMuon(MuonSettings(), Schedule::pipelined).name() == "Muon, gathers pipelined");
}

TEST_CASE("OverlappedMuon: whichever gather the settings ask for, it plans whole buckets") {
  MuonSettings cut;
  cut.gather = Gather::cut_matrices;
  const Layout layout = random_case(3).layout();
  for (const Schedule schedule : {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined})
    for (int rank = 0; rank < layout.grid.size(); ++rank) {
      const Place place = layout.grid.place(rank);
      CHECK(OverlappedMuon(cut, schedule).plan(layout, place).operations ==
            OverlappedMuon(MuonSettings(), schedule).plan(layout, place).operations);
    }
}

TEST_CASE("moves_of: all of it, in order, for three buckets and for one") {
  using Kind = BucketMove::Kind;
  const auto text = [](Schedule schedule, int buckets) {
    std::string moves;
    for (const BucketMove& move : moves_of(schedule, buckets))
      moves += (move.kind == Kind::post ? "p" : move.kind == Kind::wait ? "w" : "o") + std::to_string(move.bucket);
    return moves;
  };
  CHECK(text(Schedule::in_sequence, 3) == "p0w0o0p1w1o1p2w2o2");
  CHECK(text(Schedule::all_at_once, 3) == "p0p1p2w0w1w2o0o1o2");
  CHECK(text(Schedule::pipelined, 3) == "p0p1w0o0p2w1o1w2o2");
  for (const Schedule schedule : {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined})
    CHECK(text(schedule, 1) == "p0w0o0");
}
