#include "src/layout/small_layer.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "src/text/table.hpp"

namespace muonwalk {
namespace {

constexpr Index kMarkedRow = 1, kMarkedCol = 6;  // of down

std::string marked_line(const float* value, const std::string& where) {
  if (value == nullptr) return fmt::format("★ down[{},{}]: there is no {}", kMarkedRow, kMarkedCol, where);
  return fmt::format("★ down[{},{}] = {:.4g} at {}", kMarkedRow, kMarkedCol, *value, where);
}

}  // namespace

ElementAddress address_of(const Layout& layout, const std::string& parameter, Index row, Index col) {
  const DistMeta& meta = layout.meta(parameter);
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

std::string address_text(const Layout& layout, const ElementAddress& address) {
  const DistMeta& meta = layout.meta(address.parameter);
  const Buffer& buffer = layout.buffers.at(address.buffer_idx);
  const Index bucket_begin = buffer.buckets.at(address.bucket_idx).range.begin;
  const Index shard_begin = layout.dp_slice(address.buffer_idx, address.bucket_idx, address.dp_rank).begin;
  const std::string tp = address.tp_rank == -1 ? "every tp" : fmt::format("tp {}", address.tp_rank);
  Table table({{""}, {""}, {""}});
  table.row(
      {"1  shape", shape_text(meta.shape.rows, meta.shape.cols),
       fmt::format("{}, row {}, column {}: element {} · {} + {} = {} of the slice", tp, address.slice_row,
                   address.slice_col, address.slice_row, meta.shape.cols, address.slice_col, address.slice_element)});
  table.row({"2  buffer_idx", std::to_string(address.buffer_idx),
             fmt::format("the buffer of parameter group {}", buffer.group)});
  table.row({"3  global_range", range_text(meta.global_range),
             fmt::format("element {} + {} = {} of the buffer", meta.global_range.begin, address.slice_element,
                         address.buffer_element)});
  table.row({"4  bucket_idx", std::to_string(address.bucket_idx),
             fmt::format("it begins at {}: element {} − {} = {} of the bucket", bucket_begin, address.buffer_element,
                         bucket_begin, address.bucket_element)});
  table.row({"5  local_range", range_text(layout.local_range(meta, address.dp_rank)),
             fmt::format("dp {}, whose shard begins at {}: element {} − {} = {} of the shard", address.dp_rank,
                         shard_begin, address.buffer_element, shard_begin, address.shard_element)});
  return table.text() + "\n";
}

std::vector<Parameter> small_layer() {
  return {{"q", {4, 3}, SplitDim::rows},
          {"up", {8, 3}, SplitDim::rows},
          {"o", {3, 4}, SplitDim::columns},
          {"down", {3, 8}, SplitDim::columns}};
}

LayoutOptions small_layer_options(int tp) {
  LayoutOptions options;
  options.parameter_alignment = 4;
  options.bucket_alignment = 8;
  options.bucket_capacity = 32 / tp;
  return options;
}

float small_layer_number(int parameter, Index row, Index col) {
  return static_cast<float>(100 * (parameter + 1) + 10 * row + col);
}

Matrix small_layer_matrix(int parameter) {
  const Shape shape = small_layer().at(static_cast<std::size_t>(parameter)).shape;
  Matrix whole(shape.rows, shape.cols);
  for (Index i = 0; i < shape.rows; ++i)
    for (Index j = 0; j < shape.cols; ++j) whole(i, j) = small_layer_number(parameter, i, j);
  return whole;
}

ElementAddress marked_element(const Layout& layout) { return address_of(layout, "down", kMarkedRow, kMarkedCol); }

std::string marked_text(const Flat& flat, Index element, const std::string& of) {
  const bool there = element >= 0 && element < static_cast<Index>(flat.size());
  return marked_line(there ? &flat[element] : nullptr, fmt::format("element {} of {}", element, of));
}

std::string marked_text(const Matrix& matrix, Index row, Index col, const std::string& of) {
  const bool there = row < matrix.rows() && col < matrix.cols();
  return marked_line(there ? matrix.data() + row * matrix.cols() + col : nullptr,
                     fmt::format("row {}, column {} of {}", row, col, of));
}

}  // namespace muonwalk
