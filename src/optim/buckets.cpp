#include "src/optim/buckets.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/layout/slicing.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

/// Where a parameter's first element lies in its bucket.
Index place_in_bucket(const Layout& layout, const DistMeta& meta) {
  return meta.global_range.begin - layout.bucket({meta.buffer_idx, meta.bucket_idx}).range.begin;
}

}  // namespace

Buckets zero_buckets(const Layout& layout) {
  Buckets buckets(layout.buffers.size());
  for (const BucketNumber number : layout.all_buckets())
    buckets[number.buffer].emplace_back(layout.bucket(number).range.size());
  return buckets;
}

Buckets zero_shards(const Layout& layout, int dp_rank) {
  Buckets shards(layout.buffers.size());
  for (const auto& [b, k] : layout.all_buckets()) shards[b].emplace_back(layout.dp_slice(b, k, dp_rank).size());
  return shards;
}

Buckets pack_slices(const Layout& layout, const std::vector<Matrix>& slices) {
  Buckets buckets = zero_buckets(layout);
  for (const DistMeta& meta : layout.parameters()) {
    if (meta.parameter >= static_cast<int>(slices.size())) {
      throw std::invalid_argument(
          "The layout has a parameter number " + std::to_string(meta.parameter) + ", but " +
          std::to_string(slices.size()) +
          " matrices were given; give one per parameter, in the order the layout was planned from.");
    }
    const Matrix& slice = slices[meta.parameter];
    if (Shape{slice.rows(), slice.cols()} != meta.shape) {
      throw std::invalid_argument("A slice of " + shape_text(slice.rows(), slice.cols()) + " was given for parameter " +
                                  in_quotes(meta.name) + ", whose TP slice is " +
                                  shape_text(meta.shape.rows, meta.shape.cols) +
                                  "; give the matrices in the order the layout was planned from.");
    }
    Flat& bucket = buckets[meta.buffer_idx][meta.bucket_idx];
    std::copy(slice.flat().begin(), slice.flat().end(), bucket.begin() + place_in_bucket(layout, meta));
  }
  return buckets;
}

Buckets pack_buckets(const Layout& layout, const std::vector<const Matrix*>& full, int tp_rank) {
  std::vector<Matrix> slices(full.size());
  for (const DistMeta& meta : layout.parameters()) {
    if (meta.parameter >= static_cast<int>(full.size())) continue;  // pack_slices says what is missing
    const Matrix& whole = *full[meta.parameter];
    if (Shape{whole.rows(), whole.cols()} != meta.full_shape) {
      throw std::invalid_argument("pack_buckets was given a " + shape_text(whole.rows(), whole.cols()) +
                                  " matrix for parameter " + in_quotes(meta.name) + ", which is " +
                                  shape_text(meta.full_shape.rows, meta.full_shape.cols) +
                                  "; give the matrices in the order the layout was planned from.");
    }
    slices[meta.parameter] = tp_slice(whole, meta.tp_split_dim, layout.grid.tp(), tp_rank);
  }
  return pack_slices(layout, slices);
}

std::vector<NamedMatrix> unpack_buckets(const Layout& layout, const BucketsView& buckets, int tp_rank) {
  std::size_t count = 0;
  for (const DistMeta& meta : layout.parameters())
    count = std::max(count, static_cast<std::size_t>(meta.parameter) + 1);

  std::vector<NamedMatrix> slices(count);
  for (const DistMeta& meta : layout.parameters()) {
    const auto first = buckets[meta.buffer_idx][meta.bucket_idx].begin() + place_in_bucket(layout, meta);
    NamedMatrix& slice = slices[meta.parameter];
    slice.name = meta.name;
    slice.matrix = Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.shape.size()));
    if (meta.tp_split_dim == SplitDim::rows) slice.first_row = tp_rank * meta.shape.rows;
    if (meta.tp_split_dim == SplitDim::columns) slice.first_col = tp_rank * meta.shape.cols;
  }
  return slices;
}

Index element_count(const BucketsView& buckets) {
  Index elements = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    for (const Flat& bucket : buckets[b]) elements += static_cast<Index>(bucket.size());
  return elements;
}

}  // namespace muonwalk
