// The model of lesson 17: plans played on a link and a processor, an example worked out by hand, and what has to hold
// on any machine.
#include "lessons/lesson_17_overlap/played_plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "lessons/lesson_17_overlap/overlap_tables.hpp"
#include "src/text/text.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const Schedule kSchedules[] = {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined};

// Two buckets of one 8 × 8 matrix each on dp 2: a rank owns 32 elements of each, 128 bytes.
Layout two_buckets() {
  LayoutOptions options;
  options.bucket_capacity = 1;
  return plan_layout({{"a", {8, 8}}, {"b", {8, 8}}}, Grid().dp(2), options);
}

PlayedPlan played(const Layout& layout, Schedule schedule, const PlayedMachine& machine, int rank = 0,
                  Precision precision = Precision::fp32) {
  const MuonSettings settings = muon_settings(precision, 1, Products::eigen);
  return play(overlapped_plan(layout, layout.grid.place(rank), settings, schedule), layout, machine);
}

std::vector<Interval> stretches_of(const std::vector<PlayedBar>& bars) {
  std::vector<Interval> all;
  for (const PlayedBar& bar : bars) all.push_back(bar.stretch);
  return all;
}

std::int64_t length_of(const std::vector<PlayedBar>& bars) {
  std::int64_t sum = 0;
  for (const PlayedBar& bar : bars) sum += bar.stretch.end - bar.stretch.begin;
  return sum;
}

// How long the processor is to work on the matrices of each bucket: their FLOPs in the plan, between the first gather
// and the gather of weights. Buckets are counted through all buffers.
std::map<int, std::int64_t> work_of_buckets(const Plan& plan, const Layout& layout, const PlayedMachine& machine) {
  std::map<int, int> bucket_of;  // [parameter]
  int number = 0;
  for (const Buffer& buffer : layout.buffers)
    for (const Bucket& bucket : buffer.buckets) {
      for (const int index : bucket.parameters)
        bucket_of[buffer.parameters[static_cast<std::size_t>(index)].parameter] = number;
      ++number;
    }
  std::map<int, std::int64_t> sums;
  bool begun = false;
  for (const Operation& operation : plan.operations) {
    const Work* work = std::get_if<Work>(&operation);
    if (work == nullptr) continue;
    if (work->phase == phases::gather_weights) break;
    begun = begun || work->phase == phases::dp_gather || work->phase == phases::tp_gather;
    const std::int64_t took = std::llround(work->flops / machine.gigaflops_per_second);
    if (begun && took > 0) sums[bucket_of.at(work->parameter)] += took;
  }
  return sums;
}

std::map<int, std::int64_t> lengths_by_bucket(const std::vector<PlayedBar>& bars) {
  std::map<int, std::int64_t> sums;
  for (const PlayedBar& bar : bars) sums[bar.bucket] += bar.stretch.end - bar.stretch.begin;
  return sums;
}

bool same(const std::vector<PlayedBar>& bars, const std::vector<PlayedBar>& expected) {
  return std::equal(bars.begin(), bars.end(), expected.begin(), expected.end(), [](const auto& a, const auto& b) {
    return a.bucket == b.bucket && a.stretch.begin == b.stretch.begin && a.stretch.end == b.stretch.end;
  });
}

}  // namespace

TEST_CASE("a played plan, by hand: two buckets of 128 bytes at 1 GB/s and 1 µs, and work of 1 GFLOP/s") {
  const Layout layout = two_buckets();
  const PlayedMachine machine{{1, 1}, 1};  // a byte and a FLOP per nanosecond
  // Newton–Schulz: 20 · 8³ + 10 · 8³ = 15,360; apply: w · keep − scale · o for 32 elements, 3 operations each.
  const std::int64_t w = 15360 + 96;

  // A bucket arrives 128 + 1,000 ns after its post.
  const PlayedPlan sequence = played(layout, Schedule::in_sequence, machine);
  CHECK(sequence.span_ns == 2 * (1128 + w));
  CHECK(sequence.computing_ns == 2 * w);
  CHECK(sequence.waiting_ns == 2 * 1128);
  CHECK(same(sequence.link, {{0, {0, 128}}, {1, {1128 + w, 1128 + w + 128}}}));
  CHECK(same(sequence.processor, {{0, {1128, 1128 + w}}, {1, {2256 + w, 2256 + 2 * w}}}));
  CHECK(sequence.under_way_ns() == 2 * 1128);
  CHECK(sequence.hidden() == 0);

  // The second is 128 ns behind the first on the link.
  const PlayedPlan once = played(layout, Schedule::all_at_once, machine);
  CHECK(once.span_ns == 1256 + 2 * w);
  CHECK(once.waiting_ns == 1256);
  CHECK(same(once.link, {{0, {0, 128}}, {1, {128, 256}}}));
  CHECK(same(once.processor, {{0, {1256, 1256 + w}}, {1, {1256 + w, 1256 + 2 * w}}}));
  CHECK(once.under_way_ns() == 1128 + 1256);
  CHECK(once.hidden() == 0);

  // The second has arrived long before the work on the first is done. It is under way until it is waited for.
  const PlayedPlan pipeline = played(layout, Schedule::pipelined, machine);
  CHECK(pipeline.span_ns == 1128 + 2 * w);
  CHECK(pipeline.waiting_ns == 1128);
  CHECK(pipeline.under_way_ns() == 1128 + (1128 + w));
  CHECK(pipeline.hidden() == near(double(w) / double(1128 + w), 1e-5));

  // A slow link: the work on the first hides a part of the second.
  const PlayedMachine slow{{0.001, 1}, 1};  // 128,000 ns per bucket
  CHECK(played(layout, Schedule::in_sequence, slow).span_ns == 2 * (129000 + w));
  CHECK(played(layout, Schedule::all_at_once, slow).span_ns == 257000 + 2 * w);
  CHECK(played(layout, Schedule::pipelined, slow).span_ns == 257000 + w);

  // In bf16 half as many bytes travel.
  CHECK(played(layout, Schedule::in_sequence, machine, 0, Precision::bf16).span_ns == 2 * (1064 + w));
}

TEST_CASE("played plans: any layout and machine: no longer than one after the other, no shorter than either alone") {
  int pays = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    RandomLayout random(seed);
    random.own(seed % 3 == 0 ? Ownership::buffer : Ownership::buckets);
    random.grid = Grid().dp(random.grid.dp()).tp(seed % 2 == 0 ? 1 : random.grid.tp());
    INFO("RandomLayout(" << seed << ")");
    const Layout layout = random.plan();
    const double gigabytes[] = {0.001, 0.05, 1, 100}, latency[] = {0, 1, 200, 30000};
    const PlayedMachine machine{{gigabytes[seed % 4], latency[seed / 4 % 4]}, 0.5 + seed % 5};
    for (int rank = 0; rank < layout.grid.size(); ++rank) {
      std::vector<PlayedPlan> all;
      for (const Schedule schedule : kSchedules) {
        const Plan plan = overlapped_plan(layout, layout.grid.place(rank),
                                          muon_settings(Precision::fp32, 1, Products::eigen), schedule);
        all.push_back(play(plan, layout, machine));
        REQUIRE(lengths_by_bucket(all.back().processor) == work_of_buckets(plan, layout, machine));
      }
      for (const PlayedPlan& each : all) {
        REQUIRE(each.span_ns == each.computing_ns + each.waiting_ns);
        REQUIRE(each.waiting_ns >= 0);
        REQUIRE(each.computing_ns == all[0].computing_ns);
        REQUIRE(length_of(each.processor) == each.computing_ns);
        // One thing at a time on the link and on the processor.
        REQUIRE(IntervalSet(stretches_of(each.link)).length() == length_of(each.link));
        REQUIRE(IntervalSet(stretches_of(each.processor)).length() == each.computing_ns);
        REQUIRE(length_of(each.link) == length_of(all[0].link));
        REQUIRE(each.span_ns >= std::max(each.computing_ns, length_of(each.link)));
        REQUIRE(each.hidden() >= 0);
        REQUIRE(each.hidden() <= 1);
      }
      // TP gathers share the link, and may stand behind a bucket that was posted early.
      if (layout.grid.tp() > 1) continue;
      REQUIRE(all[0].hidden() == 0);
      REQUIRE(all[1].hidden() == 0);
      REQUIRE(all[1].span_ns <= all[0].span_ns);
      REQUIRE(all[2].span_ns <= all[0].span_ns);
      pays += all[2].span_ns < all[0].span_ns;
    }
  }
  CHECK(pays > 100);
}

TEST_CASE("played plans: on a link that takes no time, all schedules take what the processor takes") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const RandomLayout random(seed);
    INFO("RandomLayout(" << seed << ")");
    const Layout layout = random.plan();
    for (const Schedule schedule : kSchedules) {
      const PlayedPlan each = played(layout, schedule, {{1e18, 0}, 3});
      CHECK(each.waiting_ns == 0);
      CHECK(each.span_ns == each.computing_ns);
    }
  }
}

TEST_CASE("play_slowest: the rank that is done last; what can't be played is refused") {
  const Layout layout =
      plan_layout({{"a", {8, 8}}, {"b", {24, 24}}}, Grid().dp(2));  // one bucket; rank 1 owns more of b
  const MuonSettings settings = muon_settings(Precision::fp32, 1, Products::eigen);
  const PlayedMachine machine{{1, 1}, 1};
  const PlannedStep way = planned_step("x", layout, settings, Schedule::in_sequence);
  REQUIRE(way.plans.size() == 2);
  const PlayedPlan one = play(way.plans[0], layout, machine), two = play(way.plans[1], layout, machine);
  CHECK(one.span_ns != two.span_ns);
  CHECK(play_slowest(way.plans, layout, machine).span_ns == std::max(one.span_ns, two.span_ns));
  CHECK(play_slowest({way.plans[1], way.plans[0]}, layout, machine).span_ns == std::max(one.span_ns, two.span_ns));
  Plan wrong = way.plans[0];
  wrong.operations.push_back(Work{phases::tp_gather, 0, {1, 1}, 0});
  for (Operation& operation : wrong.operations)
    if (Work* work = std::get_if<Work>(&operation); work != nullptr && work->phase == phases::gather_weights)
      work->phase = phases::apply;
  wrong.operations.push_back(Call{"dp", CollectiveKind::barrier});
  CHECK_THROWS_WITH_AS(play(wrong, layout, machine), "no played plan has a barrier", std::logic_error);
}

TEST_CASE("tables: a line per way or link, the figures of the plans, and what overlap does") {
  CHECK(verdict_on(100, 100) == "neutral");
  CHECK(verdict_on(101, 100) == "neutral");
  CHECK(verdict_on(99, 100) == "neutral");
  CHECK(verdict_on(150, 100) == "loses, +50 %");
  CHECK(verdict_on(60, 100) == "pays, −40 %");
  CHECK(verdict_on(0, 0) == "neutral");
  const Layout layout = two_buckets();
  const MuonSettings settings = muon_settings(Precision::fp32, 1, Products::eigen);
  std::vector<PlannedStep> ways;
  const char* names[] = {"in sequence", "all at once", "pipelined"};
  for (const Schedule schedule : kSchedules)
    ways.push_back(planned_step(names[static_cast<int>(schedule)], layout, settings, schedule));
  CHECK_THROWS_WITH_AS(links_table(ways, {{1, 1}}, 1), "links_table compares four ways", std::invalid_argument);
  ways.push_back(planned_step("tiny buckets", layout, settings, Schedule::pipelined));
  const std::string plans = ways_table(ways);
  CHECK(plans.find("in sequence         2         2       256 B") != std::string::npos);
  const std::string machine = machine_table(ways, {{0.001, 1}, 1});
  CHECK(machine.substr(0, machine.find('\n')) ==
        "0.001 GB/s, 1 µs     span  computing  waiting  under way, added up  hidden");
  // 2 · (129,000 + 15,456) ns
  CHECK(machine.find("in sequence       0.29 ms       0.03     0.26                 0.26   0.0 %") !=
        std::string::npos);
  const std::string links = links_table(ways, {{1e6, 0}, {0.0001, 0}}, 1);
  CHECK(links.find("neutral") != std::string::npos);
  for (const std::string& table : {plans, machine, links}) CHECK(std::count(table.begin(), table.end(), '\n') >= 2);
}

TEST_CASE("ways_table: the work and the peak of the rank that has most, whichever that is") {
  const MuonSettings settings = muon_settings(Precision::fp32, 1, Products::eigen);
  int differ = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("RandomLayout(" << seed << ")");
    PlannedStep way = planned_step("x", RandomLayout(seed).plan(), settings, kSchedules[seed % 3]);
    Index most = 0, least = peak_elements(way.plans[0]);
    double work = 0;
    for (const Plan& plan : way.plans) {
      most = std::max(most, peak_elements(plan));
      least = std::min(least, peak_elements(plan));
      work = std::max(work, flops(plan, phases::orthogonalize));
    }
    differ += least < most;
    const std::string end = fmt::format("{:.1f} MFLOP", work / 1e6), peak = number_text(most);
    for (int first = 0; first < way.layout.grid.size(); ++first) {
      CAPTURE(first);
      const std::string table = ways_table({way});
      CAPTURE(table);
      CHECK(table.find(" " + end + " ") != std::string::npos);
      CHECK(table.rfind(" " + peak) == table.size() - peak.size() - 1);
      std::rotate(way.plans.begin(), way.plans.begin() + 1, way.plans.end());
    }
  }
  CHECK(differ > 10);
}
