#include "src/layout/element_address.hpp"

#include <stdexcept>

namespace muonwalk {

namespace {

const DistMeta& meta_of(const Layout& layout, const std::string& parameter) {
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters)
      if (meta.name == parameter) return meta;
  throw std::out_of_range("the layout has no parameter \"" + parameter + "\"");
}

}  // namespace

ElementAddress address_of(const Layout& layout, const std::string& parameter, Index row, Index col) {
  const DistMeta& meta = meta_of(layout, parameter);
  if (row < 0 || col < 0 || row >= meta.full_shape.rows || col >= meta.full_shape.cols)
    throw std::out_of_range("parameter \"" + parameter + "\" has no such element");
  ElementAddress address;
  address.parameter = parameter;
  address.row = address.slice_row = row;
  address.col = address.slice_col = col;

  if (meta.tp_split_dim == SplitDim::rows) {
    address.tp_rank = static_cast<int>(row / meta.shape.rows);
    address.slice_row = row % meta.shape.rows;
  } else if (meta.tp_split_dim == SplitDim::columns) {
    address.tp_rank = static_cast<int>(col / meta.shape.cols);
    address.slice_col = col % meta.shape.cols;
  }
  address.slice_element = address.slice_row * meta.shape.cols + address.slice_col;

  address.buffer_idx = meta.buffer_idx;
  address.buffer_element = meta.global_range.begin + address.slice_element;
  address.bucket_idx = meta.bucket_idx;
  const Bucket& bucket = layout.buffers[meta.buffer_idx].buckets[meta.bucket_idx];
  address.bucket_element = address.buffer_element - bucket.range.begin;

  // cuts[r] ≤ buffer_element < cuts[r + 1]; a rank may own nothing, and then two cuts are equal.
  while (address.buffer_element >= bucket.cuts.at(address.dp_rank + 1)) ++address.dp_rank;
  address.shard_element = address.buffer_element - bucket.cuts[address.dp_rank];
  return address;
}

}  // namespace muonwalk
