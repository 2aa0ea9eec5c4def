// Memory in bytes: what the plans of all optimizers say is what an allocator counts, and master weights change of a
// plan what they should and nothing else.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/plan.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// All that shards its state, and one that does not.
std::vector<MakeOptimizer> metered_optimizers(const Case& c) {
  const MakeOptimizer muon = [c] { return std::make_unique<Muon>(c.settings); };
  const MakeOptimizer zero1 = [] { return std::make_unique<Zero1AdamW>(AdamWSettings()); };
  const std::vector<ParameterGroup> groups = {{"a", {}, muon}, {"b", {}, zero1}, {"c", {}, zero1}};
  MuonSettings muon_of_sums = c.settings;
  AdamWSettings adamw_of_sums;
  muon_of_sums.summed_gradients = adamw_of_sums.summed_gradients = true;
  const MakeOptimizer muon_handed = [muon_of_sums] { return std::make_unique<Muon>(muon_of_sums); };
  const MakeOptimizer zero1_handed = [adamw_of_sums] { return std::make_unique<Zero1AdamW>(adamw_of_sums); };
  const std::vector<ParameterGroup> handed = {{"a", {}, muon_handed}, {"b", {}, zero1_handed}, {"c", {}, muon_handed}};
  return {muon,
          zero1,
          [c, groups] { return std::make_unique<GroupedOptimizer>(groups, c.parameters); },
          [] { return std::make_unique<AdamW>(AdamWSettings()); },
          muon_handed,
          zero1_handed,
          [c, handed] { return std::make_unique<GroupedOptimizer>(handed, c.parameters); }};
}

std::map<std::string, Index> bytes_by_kind(const Plan& plan) {
  std::map<std::string, Index> bytes;
  for (const Memory& each : held_between_steps(plan)) bytes[std::string(each.what)] += each.bytes();
  return bytes;
}

Index sum_of(const std::map<std::string, Index>& bytes) {
  Index sum = 0;
  for (const auto& [what, each] : bytes) sum += each;
  return sum;
}

Index elements_of(const Layout& layout) {
  Index elements = 0;
  for (const Buffer& buffer : layout.buffers) elements += buffer.size;
  return elements;
}

// Element types of the all-gathers of weights.
std::vector<ElementType> weight_gathers(const Plan& plan) {
  std::vector<ElementType> types;
  Phase phase;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation)) phase = work->phase;
    if (const Call* call = std::get_if<Call>(&operation); call != nullptr && phase == phases::gather_weights)
      types.push_back(call->type);
  }
  return types;
}

}  // namespace

TEST_CASE("phase_memory: any optimizer, grid, layout and precision: to the byte what the rank's allocator counts") {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      Case c = random_case(seed);
      c.options.ownership = ownership;
      c.settings.newton_schulz.threads = 1;
      INFO(c.text());
      const Layout layout = c.layout();
      const std::vector<NamedMatrix> weights = c.weights();
      for (const MakeOptimizer& make : metered_optimizers(c)) {
        std::vector<std::vector<PhaseMemory>> counted(static_cast<std::size_t>(c.grid.size()));
        run_ranks(c.grid, [&](TestRank& rank) {
          const auto optimizer = make();
          optimizer->start(layout, rank.place, pack_buckets(layout, pointers(weights), rank.place.tp));
          const Buckets gradients = handed_gradients(c, layout, rank, 0, *optimizer);
          PhaseMeter meter(rank.meter);
          optimizer->step({layout, rank.place, rank.dp, rank.tp,
                           [&meter](Phase phase, const DistMeta* meta) { meter.begin(phase, meta); }},
                          gradients);
          counted[static_cast<std::size_t>(rank.place.rank)] = meter.finish();
        });
        for (int r = 0; r < c.grid.size(); ++r) {
          const Plan plan = make()->plan(layout, c.grid.place(r));
          const std::vector<PhaseMemory> planned = phase_memory(plan);
          REQUIRE(planned == counted[static_cast<std::size_t>(r)]);
          Index most = sum_of(bytes_by_kind(plan));
          for (const PhaseMemory& phase : planned) most = std::max(most, phase.most);
          REQUIRE(most == peak_bytes(plan));
          compared += static_cast<int>(planned.size());
        }
      }
    }
  MESSAGE(compared, " phases were compared");
}

TEST_CASE("PhaseMeter: a byte too much in any phase shows in that phase, and where it stays, in those behind it") {
  MemoryMeter memory;
  const MeterScope scope(memory);
  const Flat kept(10);
  PhaseMeter meter(memory);
  meter.begin("one");
  FlatOf<bfloat16> stays(3);
  { const Flat moment(5); }
  meter.begin("two");
  { const Flat moment(1); }
  const std::vector<PhaseMemory> phases = meter.finish();
  REQUIRE(phases.size() == 2);
  CHECK(phases[0] == PhaseMemory{"one", -1, 40, 66});
  CHECK(phases[1] == PhaseMemory{"two", -1, 46, 50});
  CHECK(meter.finish().empty());
}

TEST_CASE(
    "with_master_weights: 6 bytes and 12 or 8 over D for each element, and only the gather of weights is another") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Case c = random_case(seed);
    c.options.ownership = seed % 2 == 0 ? Ownership::buckets : Ownership::buffer;
    INFO(c.text());
    const Layout layout = c.layout();
    for (int r = 0; r < c.grid.size(); ++r) {
      const Place place = c.grid.place(r);
      const Index all = elements_of(layout), own = layout.shard_elements(place.dp);
      const std::vector<std::pair<Plan, Index>> plans = {{muon_plan(layout, place, c.settings), 8},
                                                         {Zero1AdamW(AdamWSettings()).plan(layout, place), 12}};
      for (const auto& [plan, sharded] : plans) {
        const Plan mixed = with_master_weights(plan, layout);
        const std::map<std::string, Index> bytes = bytes_by_kind(mixed);
        CHECK(bytes.at("weights") == 2 * all);
        CHECK(bytes.at("gradients") == 4 * all);
        CHECK(bytes.at("master weights") == 4 * own);
        CHECK(sum_of(bytes) == 6 * all + sharded * own);
        // What is taken for a moment is the same.
        CHECK(peak_bytes(mixed) - sum_of(bytes) == peak_bytes(plan) - sum_of(bytes_by_kind(plan)));
        for (const ElementType type : weight_gathers(mixed)) CHECK(type == ElementType::bfloat16);
        CHECK(weight_gathers(mixed).size() == weight_gathers(plan).size());
        CHECK(count(mixed, phases::round_weights) == count(plan, phases::gather_weights));
        CHECK(count(mixed, phases::gather_weights) == count(plan, phases::gather_weights));
        CHECK(flops(mixed) == flops(plan));
        // All other calls stand as they stood.
        const std::int64_t gathered = static_cast<std::int64_t>(c.grid.dp() - 1) * own;
        CHECK(ledger_of(plan).total().bytes_sent - ledger_of(mixed).total().bytes_sent == 2 * gathered);
      }
    }
  }
}

TEST_CASE(
    "replicated: 18 and 14 bytes for each element on every rank, an all-reduce per bucket, and no gather over dp") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Case c = random_case(seed);
    INFO(c.text());
    c.options.ownership = Ownership::matrices;
    c.options.owners.clear();
    const Layout alone = plan_layout(c.parameters, Grid().tp(c.grid.tp()), c.options);
    Index buckets = 0;
    for (const Buffer& buffer : alone.buffers) buckets += static_cast<Index>(buffer.buckets.size());
    for (int r = 0; r < c.grid.size(); ++r) {
      const Place place = c.grid.place(r), one = alone.grid.place(place.tp);
      const std::vector<std::pair<Plan, Index>> plans = {{muon_plan(alone, one, c.settings), 14},
                                                         {Zero1AdamW(AdamWSettings()).plan(alone, one), 18}};
      for (const auto& [plan, each] : plans) {
        const Plan all = replicated(with_master_weights(plan, alone), c.grid, place);
        CHECK(sum_of(bytes_by_kind(all)) == each * elements_of(alone));
        CHECK(all.place.rank == r);
        CHECK(count(all, phases::gather_weights) == 0);
        CHECK(flops(all) == flops(plan));
        Index reduced = 0;
        for (const Operation& operation : all.operations)
          if (const Call* call = std::get_if<Call>(&operation); call != nullptr && call->group == "dp") {
            CHECK(call->kind == CollectiveKind::all_reduce);
            ++reduced;
          }
        CHECK(reduced == buckets);
      }
    }
  }
}

TEST_CASE("rounded, widened and shards_of: the same numbers in less room, and each rank its own") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Case c = random_case(seed);
    INFO(c.text());
    const Layout layout = c.layout();
    Buckets whole = pack_buckets(layout, pointers(c.weights()), 0);
    std::vector<Buckets> shards;
    for (int dp = 0; dp < c.grid.dp(); ++dp) shards.push_back(shards_of(layout, whole, dp));
    for (std::size_t b = 0; b < whole.size(); ++b)
      for (std::size_t k = 0; k < whole[b].size(); ++k) {
        Flat joined;
        for (const Buckets& each : shards) joined.insert(joined.end(), each[b][k].begin(), each[b][k].end());
        CHECK(joined == whole[b][k]);
      }
    const Buckets back = widened(rounded(whole));
    for (std::vector<Flat>& buffer : whole)
      for (Flat& bucket : buffer) round_to_bf16(bucket.data(), static_cast<Index>(bucket.size()));
    CHECK(back == whole);
  }
}
