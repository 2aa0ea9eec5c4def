// Weights and gradients as a rank holds them: packed into buckets, and out again.
#include <doctest/doctest.h>

#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/sentence_of.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

TEST_CASE("pack_buckets: any layout: a parameter's elements lie at its global range, and all the rest is zero") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed);
    CAPTURE(c.text());
    const Layout layout = c.layout();
    const std::vector<NamedMatrix> weights = c.weights();
    for (int tp_rank = 0; tp_rank < c.grid.tp(); ++tp_rank) {
      const Buckets buckets = pack_buckets(layout, pointers(weights), tp_rank);
      REQUIRE(buckets.size() == layout.buffers.size());
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        // The whole virtual buffer, from the definition: element i of it is element (row, col) of some slice, or
        // padding.
        Flat virtual_buffer(layout.buffers[b].size, 0.0f);
        for (const DistMeta& meta : layout.buffers[b].parameters) {
          const Matrix& whole = weights[meta.parameter].matrix;
          const Index row0 = meta.tp_split_dim == SplitDim::rows ? tp_rank * meta.shape.rows : 0;
          const Index col0 = meta.tp_split_dim == SplitDim::columns ? tp_rank * meta.shape.cols : 0;
          for (Index e = 0; e < meta.shape.size(); ++e) {
            virtual_buffer[meta.global_range.begin + e] = whole(row0 + e / meta.shape.cols, col0 + e % meta.shape.cols);
          }
        }
        Flat packed;
        for (const Flat& bucket : buckets[b]) packed.insert(packed.end(), bucket.begin(), bucket.end());
        CHECK(packed == virtual_buffer);
      }
    }
  }
}

TEST_CASE("unpack_buckets: any layout: gives back every TP slice with its name and its place in the whole") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed);
    CAPTURE(c.text());
    const Layout layout = c.layout();
    const std::vector<NamedMatrix> weights = c.weights();
    for (int tp_rank = 0; tp_rank < c.grid.tp(); ++tp_rank) {
      const auto slices = unpack_buckets(layout, pack_buckets(layout, pointers(weights), tp_rank), tp_rank);
      REQUIRE(slices.size() == c.parameters.size());
      for (std::size_t p = 0; p < slices.size(); ++p) {
        const Matrix& whole = weights[p].matrix;
        CHECK(slices[p].name == c.parameters[p].name);
        CHECK(same_bits(slices[p].matrix, tp_slice(whole, c.parameters[p].tp_split_dim, c.grid.tp(), tp_rank)));
        CHECK(slices[p].matrix(0, 0) == whole(slices[p].first_row, slices[p].first_col));
      }
    }
  }
}

TEST_CASE("pack_buckets: a missing matrix or one of another shape is refused by name") {
  const Layout layout = plan_layout({{"first", {2, 3}}, {"second", {4, 5}}}, Grid());
  const Matrix right = random_matrix({1, 1}, 2, 3);
  const Matrix wrong = random_matrix({1, 2}, 5, 4);
  CHECK(
      sentence_of([&] {
        pack_buckets(layout, {&right, &wrong}, 0);
      }) ==
      "pack_buckets was given a 5 × 4 matrix for parameter \"second\", which is 4 × 5; give the matrices in the order "
      "the layout was planned from.");
  CHECK(sentence_of([&] { pack_buckets(layout, {&right}, 0); }) ==
        "The layout has a parameter number 1, but 1 matrices were given; give one per parameter, in the order the "
        "layout was planned from.");
}
