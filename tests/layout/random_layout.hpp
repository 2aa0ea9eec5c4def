#pragma once

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "src/layout/buffer.hpp"

/// A random description of a layout, and the words that repeat it.
struct RandomLayout {
  std::vector<muonwalk::Parameter> parameters;
  muonwalk::Grid grid;
  muonwalk::LayoutOptions options;

  explicit RandomLayout(unsigned seed) {
    std::mt19937 random(seed);
    const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const auto one_of = [&](std::vector<int> values) {
      return values[between(0, static_cast<int>(values.size()) - 1)];
    };

    const int tp = between(1, 4);
    grid = muonwalk::Grid().dp(between(1, 7)).tp(tp);
    options.parameter_alignment = one_of({1, 1, 2, 3, 8, 64});
    options.bucket_alignment = one_of({1, 1, 2, 5, 16});
    options.bucket_capacity = one_of({0, 0, 1, 7, 40, 200, 10000});
    const int count = between(1, 9);
    for (int i = 0; i < count; ++i) {
      muonwalk::Parameter parameter;
      parameter.name = "w" + std::to_string(i);
      parameter.tp_split_dim = static_cast<muonwalk::SplitDim>(between(-1, 1));
      // Now and then a matrix many times the size of its neighbours, which spans several ranks.
      const int largest = between(0, 4) == 0 ? 24 : 5;
      parameter.shape = {between(1, largest), between(1, largest)};
      if (parameter.tp_split_dim == muonwalk::SplitDim::rows) parameter.shape.rows *= tp;
      if (parameter.tp_split_dim == muonwalk::SplitDim::columns) parameter.shape.cols *= tp;
      parameter.group = between(0, 2);
      parameters.push_back(parameter);
    }
  }

  /// Elements of a parameter's TP slice.
  muonwalk::Index elements(std::size_t p) const {
    const muonwalk::Index all = parameters[p].shape.rows * parameters[p].shape.cols;
    return parameters[p].tp_split_dim == muonwalk::SplitDim::none ? all : all / grid.tp();
  }

  /// Another policy; whole matrices get any owners.
  void own(muonwalk::Ownership ownership) {
    options.ownership = ownership;
    options.owners.clear();
    if (ownership != muonwalk::Ownership::matrices) return;
    std::mt19937 random(static_cast<unsigned>(parameters.size()) + static_cast<unsigned>(grid.size()));
    for (std::size_t p = 0; p < parameters.size(); ++p)
      options.owners.push_back(std::uniform_int_distribution<int>(0, grid.dp() - 1)(random));
  }

  muonwalk::Layout plan() const { return plan_layout(parameters, grid, options); }
};
