// What a plan is where nothing is asked for, where one choice is made and no other, and at the ends of what can be
// planned.
#include <doctest/doctest.h>

#include <stdexcept>

#include "src/layout/buffer.hpp"
#include "src/layout/sharding.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"

using namespace muonwalk;

namespace {

LayoutOptions closely() {
  LayoutOptions options;
  options.parameter_alignment = 1;
  return options;
}

}  // namespace

TEST_CASE("plan_layout: what is not asked for: parameters at multiples of 64, one bucket for all, equal parts of it") {
  const LayoutOptions options;
  CHECK(options.bucket_capacity == 0);
  CHECK(options.parameter_alignment == 64);
  CHECK(options.bucket_alignment == 1);
  CHECK(options.ownership == Ownership::buckets);
  CHECK(options.owners.empty());
  const Parameter parameter;
  CHECK(parameter.tp_split_dim == SplitDim::none);
  CHECK(parameter.group == 0);
  CHECK(parameter.dims == 2);
  const Layout layout = plan_layout({{"a", {5, 13}}, {"b", {3, 1}}}, Grid().dp(4));
  REQUIRE(layout.buffers.size() == 1);
  // 65 elements, so that b begins at 128; 131 in all, and one of padding behind them, for four equal parts.
  CHECK(layout.meta("a").global_range == Range{0, 65});
  CHECK(layout.meta("b").global_range == Range{128, 131});
  CHECK(layout.buffers[0].size == 132);
  CHECK(layout.buffers[0].padding == 64);
  REQUIRE(layout.buffers[0].buckets.size() == 1);
  CHECK(layout.dp_counts(0, 0) == std::vector<Index>{33, 33, 33, 33});
  CHECK(layout.owners(layout.meta("a")) == std::vector<int>{0, 1});
  CHECK(layout.owners(layout.meta("b")) == std::vector<int>{3});
  CHECK_FALSE(layout.whole_matrices());
  CHECK_THROWS_AS(layout.shard_elements(4), std::out_of_range);
  CHECK_THROWS_AS(layout.shard_elements(-1), std::out_of_range);
  CHECK_THROWS_AS(layout.dp_counts(0, 1), std::out_of_range);
  CHECK_THROWS_AS(layout.dp_counts(1, 0), std::out_of_range);
}

TEST_CASE("plan_layout: whole matrices without owners: by the work of whole matrices, and not by their elements") {
  // By work a, which is square, has more than b; d has less than either. By elements b and a are equal.
  const std::vector<Parameter> parameters = {{"b", {2, 8}}, {"a", {4, 4}}, {"d", {1, 9}}};
  CHECK(balanced_owners(parameters, 2) == std::vector<int>{1, 0, 1});
  LayoutOptions options = closely();
  options.ownership = Ownership::matrices;
  const Layout layout = plan_layout(parameters, Grid().dp(2), options);
  CHECK(layout.owners(layout.meta("b")) == std::vector<int>{1});
  CHECK(layout.owners(layout.meta("a")) == std::vector<int>{0});
  CHECK(layout.owners(layout.meta("d")) == std::vector<int>{1});
  // Of columns is left a tall slice with little work; but all of the matrix is what is orthogonalized.
  const Layout cut =
      plan_layout({{"wide", {4, 8}, SplitDim::columns}, {"p", {4, 7}}, {"q", {2, 3}}}, Grid().dp(2).tp(8), options);
  CHECK(cut.owners(cut.meta("wide")) == std::vector<int>{0});
  CHECK(cut.owners(cut.meta("p")) == std::vector<int>{1});
  CHECK(cut.owners(cut.meta("q")) == std::vector<int>{1});
}

TEST_CASE("plan_layout: owners are looked at whatever owns, and count with whole matrices alone") {
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer}) {
    LayoutOptions options = closely();
    options.ownership = ownership;
    options.owners = {1, 0};
    const Layout layout = plan_layout({{"a", {2, 3}}, {"b", {2, 3}}}, Grid().dp(2), options);
    CHECK(layout.owners(layout.meta("a")) == std::vector<int>{0});
    CHECK(layout.owners(layout.meta("b")) == std::vector<int>{1});
    CHECK_FALSE(layout.whole_matrices());
    options.owners = {1, 2};
    CHECK(usage_error([&] {
            plan_layout({{"a", {2, 3}}, {"b", {2, 3}}}, Grid().dp(2), options);
          }) == "DP rank 2 can't own a parameter on dp 2; its ranks are 0 to 1");
  }
}

TEST_CASE("plan_layout: a buffer of 2⁴⁸ elements can be counted, one of one more can't") {
  const Shape most = {Index{1} << 24, Index{1} << 24};
  CHECK(plan_layout({{"a", most}}, Grid(), closely()).buffers[0].size == Index{1} << 48);
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
    LayoutOptions options = closely();
    options.ownership = ownership;
    CHECK(usage_error([&] {
            plan_layout({{"a", most, SplitDim::none, 3}, {"b", {1, 1}, SplitDim::none, 3}}, Grid(), options);
          }) ==
          "the buffer of parameter group 3 has more elements than a layout can count; try smaller shapes or more "
          "groups");
  }
  for (const Shape shape : {Shape{5, 0}, Shape{0, 1}, Shape{-2, 5}, Shape{1, -1}})
    CHECK(usage_error([&] {
            plan_layout({{"a", shape}}, Grid());
          }) == "parameter \"a\" is " + shape_text(shape.rows, shape.cols) +
                    ", but a matrix has at least 1 row and 1 column; leave it out or give it a shape");
  for (const Shape shape : {Shape{(Index{1} << 24) + 1, Index{1} << 24}, Shape{Index{1} << 24, (Index{1} << 24) + 1}})
    CHECK(usage_error([&] {
            plan_layout({{"a", shape}}, Grid());
          }).find(", more elements than a layout can count; ") != std::string::npos);
}

TEST_CASE("of_group: the buffer of that group alone, with all options; of a group that is not there, nothing") {
  LayoutOptions options;
  options.parameter_alignment = 2;
  options.bucket_alignment = 3;
  options.bucket_capacity = 5;
  options.ownership = Ownership::matrices;
  options.owners = {2, 1, 0, 2};
  const std::vector<Parameter> parameters = {{"a", {2, 3}, SplitDim::none, 9},
                                             {"b", {1, 4}, SplitDim::none, 3},
                                             {"c", {1, 1}, SplitDim::none, 9},
                                             {"d", {5, 1}, SplitDim::none, 3}};
  const Layout layout = plan_layout(parameters, Grid().dp(3).tp(2), options);
  REQUIRE(layout.buffers.size() == 2);
  CHECK(layout.buffers[0].group == 3);
  CHECK(layout.buffers[1].group == 9);
  CHECK(layout.meta("a").buffer_idx == 1);
  for (const int group : {3, 9}) {
    const Layout part = layout.of_group(group);
    REQUIRE(part.buffers.size() == 1);
    CHECK(part.buffers[0].group == group);
    CHECK(part.buffers[0].size == layout.buffers[group == 9].size);
    CHECK(part.grid == layout.grid);
    CHECK(part.options.parameter_alignment == 2);
    CHECK(part.options.bucket_alignment == 3);
    CHECK(part.options.bucket_capacity == 5);
    CHECK(part.whole_matrices());
    CHECK(part.options.owners == options.owners);
    for (const DistMeta& meta : part.buffers[0].parameters) {
      CHECK(meta.buffer_idx == 0);
      CHECK(parameters[static_cast<std::size_t>(meta.parameter)].name == meta.name);
      CHECK(part.owners(meta) == layout.owners(layout.meta(meta.name)));
    }
  }
  const Layout none = layout.of_group(4);
  CHECK(none.buffers.empty());
  CHECK(none.grid == layout.grid);
  CHECK(none.whole_matrices());
  CHECK(none.shard_elements(0) == 0);
}

TEST_CASE("sharding_of: TP slices are owned and gathered, whole matrices are worked on, with the steps asked for") {
  // On dp 2, tp 2: a's slice is 4 × 3, b's 5 × 2; of group 7 c's is all of it, 3 × 5. Buffers of 22 and 15 + 1
  // elements.
  const Layout layout =
      plan_layout({{"a", {8, 3}, SplitDim::rows}, {"b", {5, 4}, SplitDim::columns}, {"c", {3, 5}, SplitDim::none, 7}},
                  Grid().dp(2).tp(2), closely());
  for (const int steps : {1, 2, 7}) {
    CAPTURE(steps);
    const auto work = [steps](double m, double n) { return steps * (4 * m * m * n + 2 * m * m * m); };
    const double a = work(3, 8), b = work(4, 5), c = work(3, 5);
    const Sharding sharding = sharding_of(layout, steps);
    CHECK(sharding.matrices == 3);
    CHECK(sharding.cut == 2);
    CHECK(sharding.elements == std::vector<Index>{11 + 8, 1 + 10 + 7});
    CHECK(sharding.gathered == std::vector<Index>{1 + 7, 11 + 8});
    CHECK(sharding.flops_once == a + b + c);
    REQUIRE(sharding.flops.size() == 2);
    CHECK(sharding.flops[0] == a + c);
    CHECK(sharding.flops[1] == a + b + c);
    CHECK(sharding.redundancy(2) == near(2 * (2 * a + b + 2 * c) / (a + b + c)));
    CHECK(sharding.slowdown() == near(2));
  }
  CHECK(sharding_of(layout).flops_once == sharding_of(layout, 5).flops_once);
  CHECK(most_over_mean(std::vector<Index>{1, 6, 2}) == 2);
  CHECK(most_over_mean(std::vector<double>{6, 1, 2}) == 2);
  CHECK(most_over_mean(std::vector<double>{1, 2, 6}) == 2);
  CHECK(most_over_mean(std::vector<double>{}) == 1);
  CHECK(most_over_mean(std::vector<double>{0, 0}) == 1);
}
