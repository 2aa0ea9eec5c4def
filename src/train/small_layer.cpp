#include "src/train/small_layer.hpp"

#include <fmt/format.h>

namespace muonwalk {

namespace {

constexpr Index kMarkedRow = 2, kMarkedCol = 6;  // of down

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

std::string marked_text(float value, const std::string& where) {
  return fmt::format("★ down[{},{}] = {:.4g} at {}", kMarkedRow, kMarkedCol, value, where);
}

}  // namespace muonwalk
