#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "src/layout/slicing.hpp"
#include "src/layout/small_layer.hpp"
#include "tests/layout/random_layout.hpp"

using namespace muonwalk;

namespace {

// Every element of a parameter has a number of its own.
Matrix numbered(Shape shape) {
  Matrix x(shape.rows, shape.cols);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i);
  return x;
}

}  // namespace

// The oracle really cuts slices, lays a bucket and cuts shards; the addresses only have to find the numbers in them.
TEST_CASE("address_of: any layout, every element: its number stands at each of its addresses") {
  for (unsigned seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    RandomLayout description(seed);
    description.own(static_cast<Ownership>(seed % 3));
    const Layout layout = description.plan();
    for (std::size_t p = 0; p < description.parameters.size(); ++p) {
      const Parameter& parameter = description.parameters[p];
      const Matrix whole = numbered(parameter.shape);
      for (Index i = 0; i < whole.rows(); ++i)
        for (Index j = 0; j < whole.cols(); ++j) {
          const float number = whole(i, j);
          const ElementAddress at = address_of(layout, parameter.name, i, j);
          REQUIRE(at.parameter == parameter.name);
          REQUIRE(whole(at.row, at.col) == number);
          REQUIRE((at.tp_rank == -1) == (parameter.tp_split_dim == SplitDim::none));
          const int tp_rank = at.tp_rank == -1 ? description.grid.tp() - 1 : at.tp_rank;
          const Matrix slice = tp_slice(whole, parameter.tp_split_dim, description.grid.tp(), tp_rank);
          REQUIRE(slice(at.slice_row, at.slice_col) == number);
          REQUIRE(slice.flat()[at.slice_element] == number);

          const Buffer& buffer = layout.buffers[at.buffer_idx];
          Flat laid(buffer.size, -1.0f);
          for (const DistMeta& meta : buffer.parameters)
            if (meta.name == parameter.name)
              std::copy(slice.data(), slice.data() + slice.size(), laid.begin() + meta.global_range.begin);
          REQUIRE(laid[at.buffer_element] == number);
          const Range bucket = buffer.buckets[at.bucket_idx].range;
          REQUIRE(at.bucket_element < bucket.size());
          REQUIRE(laid[bucket.begin + at.bucket_element] == number);
          const Range shard = layout.dp_slice(at.buffer_idx, at.bucket_idx, at.dp_rank);
          REQUIRE(at.shard_element >= 0);
          REQUIRE(at.shard_element < shard.size());
          REQUIRE(laid[shard.begin + at.shard_element] == number);

          Place place;
          place.dp = at.dp_rank;
          place.tp = tp_rank;
          REQUIRE(at.owned_by(place));
          place.dp += 1;
          REQUIRE(!at.owned_by(place));
          REQUIRE(at.in_slice_of(place));
          place.tp += 1;
          REQUIRE(at.in_slice_of(place) == (at.tp_rank == -1));
        }
    }
  }
}

TEST_CASE("address_text: a line per coordinate, with sums that are right") {
  LayoutOptions options;
  options.parameter_alignment = 4;
  options.bucket_alignment = 8;
  options.bucket_capacity = 16;
  const Layout layout = plan_layout({{"q", {4, 3}, SplitDim::rows, 0},
                                     {"up", {8, 3}, SplitDim::rows, 0},
                                     {"o", {3, 4}, SplitDim::columns, 0},
                                     {"down", {3, 8}, SplitDim::columns, 0},
                                     {"norm", {1, 3}, SplitDim::none, 5}},
                                    Grid().dp(2).tp(2), options);
  CHECK(address_text(layout, address_of(layout, "down", 2, 6)) ==
        "1  shape         3 × 4  tp 1, row 2, column 2: element 2 · 4 + 2 = 10 of the slice\n"
        "2  buffer_idx    0      the buffer of parameter group 0\n"
        "3  global_range  32–43  element 32 + 10 = 42 of the buffer\n"
        "4  bucket_idx    1      it begins at 24: element 42 − 24 = 18 of the bucket\n"
        "5  local_range   0–7    dp 1, whose shard begins at 36: element 42 − 36 = 6 of the shard\n");
  const std::string norm = address_text(layout, address_of(layout, "norm", 0, 1));
  CHECK(norm ==
        "1  shape         1 × 3  every tp, row 0, column 1: element 0 · 3 + 1 = 1 of the slice\n"
        "2  buffer_idx    1      the buffer of parameter group 5\n"
        "3  global_range  0–2    element 0 + 1 = 1 of the buffer\n"
        "4  bucket_idx    0      it begins at 0: element 1 − 0 = 1 of the bucket\n"
        "5  local_range   0–2    dp 0, whose shard begins at 0: element 1 − 0 = 1 of the shard\n");
}
