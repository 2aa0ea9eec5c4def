// The numbers of a rank: as they are planned, sent to the parent, and put together again.
#include "lessons/lesson_14_memory/rank_memory.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "lessons/lesson_14_memory/memory_report.hpp"
#include "lessons/lesson_14_memory/way.hpp"
#include "src/optim/master_weights.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const std::vector<Way> kAllWays = {
    {"AdamW", false, false}, {"Muon", true, false}, {"ZeRO-1 AdamW", false, true}, {"ZeRO-1 Muon", true, true}};

RankMemory planned_of(const Way& way, const Grid& grid, int rank, Index bucket_capacity) {
  const std::vector<Parameter> parameters = memory_model();
  const Layout layout = layout_of(way, parameters, grid, bucket_capacity);
  return memory_of(way, optimizer_of(way, parameters, MuonSettings()), layout, grid, grid.place(rank));
}

Index hidden_elements(int tp) { return (48 * 16 + 16 * 16 + 64 * 16 + 16 * 64) * 2 / tp; }

}  // namespace

TEST_CASE(
    "planned_memory: of hidden matrices 18 and 14 bytes per parameter, and 6 + 12 / D and 6 + 8 / D with ZeRO-1") {
  for (const int dp : {1, 2, 4, 8})
    for (const int tp : {1, 2, 4}) {
      const Grid grid = Grid().dp(dp).tp(tp);
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Index n = hidden_elements(tp);  // a power of two times three: no padding
        CHECK(planned_of(kAllWays[0], grid, rank, 1536).kept_for_hidden == 18 * n);
        CHECK(planned_of(kAllWays[1], grid, rank, 1536).kept_for_hidden == 14 * n);
        CHECK(planned_of(kAllWays[2], grid, rank, 1536).kept_for_hidden == 6 * n + 12 * n / dp);
        CHECK(planned_of(kAllWays[3], grid, rank, 1536).kept_for_hidden == 6 * n + 8 * n / dp);
      }
    }
}

TEST_CASE("planned_memory: Muon saves a quarter of what is sharded at best, and takes more for a moment") {
  for (const Index capacity : {Index{1}, Index{1536}, Index{1000000}}) {
    const Grid grid = Grid().dp(4).tp(2);
    const RankMemory adamw = planned_of(kAllWays[2], grid, 2, capacity),
                     muon = planned_of(kAllWays[3], grid, 2, capacity);
    CHECK(muon.held() < adamw.held());
    CHECK(muon.kept.at("momentum") < adamw.kept.at("first moments"));
    CHECK(muon.kept.at("second moments") < adamw.kept.at("second moments"));
    for (const char* same : {"weights", "gradients", "master weights"})
      CHECK(muon.kept.at(same) == adamw.kept.at(same));
    CHECK(muon.most() - muon.held() > adamw.most() - adamw.held());
  }
}

TEST_CASE("numbers_of: every number under a name of its own, and with_numbers puts them back") {
  const Grid grid = Grid().dp(2).tp(2);
  for (const Way& way : kAllWays) {
    const RankMemory memory = planned_of(way, grid, 1, 500);
    const NamedNumbers numbers = numbers_of(memory, way.name);
    CHECK(numbers.size() == memory.kept.size() + 1 + 2 * memory.phases.size());
    RankMemory other = memory;
    for (auto& [what, bytes] : other.kept) bytes = 0;
    for (PhaseMemory& phase : other.phases) phase.held = phase.most = 0;
    other.kept_for_hidden = 0;
    other = with_numbers(other, way.name, numbers);
    CHECK(other.kept == memory.kept);
    CHECK(other.phases == memory.phases);
    CHECK(other.kept_for_hidden == memory.kept_for_hidden);
    CHECK(other.held() == memory.held());
    CHECK(other.most() == memory.most());
  }
}

TEST_CASE("with_numbers: what is missing is −1, and what nobody planned is held all the same") {
  RankMemory planned;
  planned.kept = {{"weights", 2}, {"momentum", 4}};
  planned.phases = {{"DP gather", -1, 6, 9}};
  NamedNumbers counted = numbers_of(planned, "Muon");
  counted.erase("Muon, kept: weights");
  counted["Muon, kept: second moments"] = 7;
  counted["ZeRO-1 Muon, kept: second moments"] = 100;
  const RankMemory read = with_numbers(planned, "Muon", counted);
  CHECK(read.kept == std::map<std::string, Index>{{"weights", -1}, {"momentum", 4}, {"second moments", 7}});
  CHECK(read.phases == planned.phases);
}

TEST_CASE("as_matrices: a matrix of one element for each number, and none that a float32 would round") {
  CountedMemory counted;
  counted["Muon"].kept["weights"] = 1 << 24;
  const std::vector<NamedMatrix> matrices = as_matrices(counted);
  REQUIRE(matrices.size() == 2);  // and that of the hidden matrices
  CHECK(matrices[0].matrix.size() == 1);
  counted["Muon"].kept["weights"] += 1;
  CHECK_THROWS_WITH_AS(as_matrices(counted), "16777217 bytes are more than a float32 counts exactly", std::logic_error);
}
