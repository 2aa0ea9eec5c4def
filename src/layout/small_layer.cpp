#include "src/layout/small_layer.hpp"

#include <fmt/format.h>

namespace muonwalk {

namespace {

constexpr Index kMarkedRow = 1, kMarkedCol = 6;  // of down

std::string marked_line(const float* value, const std::string& where) {
  if (value == nullptr) return fmt::format("★ down[{},{}]: there is no {}", kMarkedRow, kMarkedCol, where);
  return fmt::format("★ down[{},{}] = {:.4g} at {}", kMarkedRow, kMarkedCol, *value, where);
}

}  // namespace

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
