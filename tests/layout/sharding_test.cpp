// What a layout means for Newton–Schulz: worked out by hand here, and against the plans of all ranks in
// tests/optim/optimizer_test.cpp.
#include "src/layout/sharding.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "src/numerics/newton_schulz.hpp"
#include "tests/layout/random_layout.hpp"
#include "tests/near.hpp"

using namespace muonwalk;

namespace {

const std::vector<Parameter> kThree = {{"a", {4, 4}}, {"b", {2, 8}}, {"c", {8, 8}}};  // 16, 16 and 64 elements

Sharding of(Ownership ownership, std::vector<int> owners = {}, Index capacity = 0) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.bucket_capacity = capacity;
  options.ownership = ownership;
  options.owners = std::move(owners);
  return sharding_of(plan_layout(kThree, Grid().dp(3), options));
}

double work(std::vector<int> matrices) {
  double sum = 0;
  for (const int m : matrices) sum += newton_schulz_flops(kThree[m].shape.rows, kThree[m].shape.cols, 5);
  return sum;
}

}  // namespace

TEST_CASE("sharding_of: a cut in each bucket, or two in the buffer, or none, worked out by hand") {
  // 96 elements: ranks own 0–31, 32–63 and 64–95, and c begins at 32.
  Sharding flat = of(Ownership::buffer);
  CHECK(flat.matrices == 3);
  CHECK(flat.cut == 1);
  CHECK(flat.elements == std::vector<Index>{32, 32, 32});
  CHECK(flat.gathered == std::vector<Index>{0, 32, 32});
  CHECK(flat.flops == std::vector<double>{work({0, 1}), work({2}), work({2})});
  CHECK(flat.flops_once == work({0, 1, 2}));
  CHECK(flat.redundancy(1) == near((work({0, 1, 2}) + work({2})) / work({0, 1, 2})));
  CHECK(flat.redundancy(2) == near(2 * flat.redundancy(1)));
  CHECK(flat.slowdown() == near(3 * work({2}) / work({0, 1, 2})));

  // A bucket for each matrix: of 16 elements rank 2 owns the last 4, and 2 of padding; of 64 the last 20, and 2.
  const Sharding buckets = of(Ownership::buckets, {}, 1);
  CHECK(buckets.cut == 3);
  CHECK(buckets.elements == std::vector<Index>{6 + 6 + 22, 6 + 6 + 22, 4 + 4 + 20});
  CHECK(buckets.gathered == std::vector<Index>{10 + 10 + 42, 10 + 10 + 42, 12 + 12 + 44});
  CHECK(buckets.redundancy(1) == near(3));
  CHECK(buckets.slowdown() == near(3));

  const Sharding whole = of(Ownership::matrices, {0, 2, 2});
  CHECK(whole.cut == 0);
  CHECK(whole.elements == std::vector<Index>{16, 0, 80});
  CHECK(whole.gathered == std::vector<Index>{0, 0, 0});
  CHECK(whole.flops == std::vector<double>{work({0}), 0, work({1, 2})});
  CHECK(whole.redundancy(1) == near(1));
  CHECK(whole.slowdown() == near(3 * work({1, 2}) / work({0, 1, 2})));
}

TEST_CASE("owners: in turn, or the largest load first to the rank that has least, found by looking at all ranks") {
  CHECK(round_robin_owners(kThree, 2) == std::vector<int>{0, 1, 0});
  CHECK(round_robin_owners({}, 2).empty());
  // By elements a and b are equal; by work a, which is square, has more.
  CHECK(balanced_owners(kThree, 2, Load::elements) == std::vector<int>{1, 1, 0});
  CHECK(balanced_owners({{"b", {2, 8}}, {"a", {4, 4}}, {"d", {1, 9}}}, 2, Load::work) == std::vector<int>{1, 0, 1});
  CHECK(balanced_owners({{"b", {2, 8}}, {"a", {4, 4}}, {"d", {1, 9}}}, 2, Load::elements) == std::vector<int>{0, 1, 0});
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const RandomLayout random(seed);
    const int dp = random.grid.dp();
    for (const Load load : {Load::elements, Load::work}) {
      CAPTURE(seed);
      const std::vector<int> owners = balanced_owners(random.parameters, dp, load);
      const auto load_of = [&](const Parameter& p) {
        return load == Load::work ? newton_schulz_flops(p.shape.rows, p.shape.cols) : double(p.shape.size());
      };
      std::vector<double> loads(static_cast<std::size_t>(dp));
      std::vector<bool> dealt(owners.size());
      for (std::size_t turn = 0; turn < owners.size(); ++turn) {
        std::size_t next = owners.size();
        for (std::size_t p = 0; p < owners.size(); ++p)
          if (!dealt[p] && (next == owners.size() || load_of(random.parameters[p]) > load_of(random.parameters[next])))
            next = p;
        const auto least = std::min_element(loads.begin(), loads.end());
        REQUIRE(owners[next] == least - loads.begin());
        *least += load_of(random.parameters[next]);
        dealt[next] = true;
      }
    }
  }
}

TEST_CASE("with_experts: a rank has what it has of the one list, and what its number over ep has of the other") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    const RandomLayout random(seed), other(seed + 1000);
    const int copies = random.grid.dp(), ep = 1 + static_cast<int>(seed % 4);
    const auto layout = [&](const std::vector<Parameter>& parameters, int dp, Ownership ownership) {
      LayoutOptions options = random.options;
      options.ownership = ownership;
      options.owners.clear();
      std::vector<Parameter> whole = parameters;
      for (Parameter& each : whole) each.tp_split_dim = SplitDim::none;
      return sharding_of(plan_layout(whole, Grid().dp(dp), options));
    };
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      const Sharding experts = layout(random.parameters, copies, ownership);
      const Sharding others = layout(other.parameters, copies * ep, ownership);
      const Sharding both = with_experts(others, experts);
      CHECK(both.matrices == others.matrices + ep * experts.matrices);
      CHECK(both.cut == others.cut + ep * experts.cut);
      double flops = 0, sum = 0;
      for (int rank = 0; rank < copies * ep; ++rank) {  // EP groups are ranks that follow each other
        CHECK(both.elements[rank] == others.elements[rank] + experts.elements[rank / ep]);
        CHECK(both.gathered[rank] == others.gathered[rank] + experts.gathered[rank / ep]);
        CHECK(both.flops[rank] == others.flops[rank] + experts.flops[rank / ep]);
        flops += both.flops[rank];
      }
      for (const double each : others.flops) sum += each;
      for (const double each : experts.flops) sum += ep * each;
      CHECK(flops == near(sum));
      if (ownership == Ownership::matrices) CHECK(both.redundancy(1) == near(1));
      if (copies == 1) CHECK(experts.cut == 0);
    }
  }
  const Sharding three = of(Ownership::buffer);  // of three ranks
  CHECK_THROWS_AS(with_experts(three, Sharding{}), std::invalid_argument);
  Sharding two = three;
  two.flops.pop_back();
  CHECK_THROWS_AS(with_experts(three, two), std::invalid_argument);
}
