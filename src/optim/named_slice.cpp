#include "src/optim/named_slice.hpp"

#include <stdexcept>
#include <utility>

#include "src/text/names.hpp"

namespace muonwalk {

NamedMatrix named_slice(const Parameter& parameter, const Matrix& whole, int tp, int tp_rank) {
  const bool by_rows = parameter.tp_split_dim == SplitDim::rows;
  const bool by_columns = parameter.tp_split_dim == SplitDim::columns;
  if (Shape{whole.rows(), whole.cols()} != parameter.shape)
    throw std::invalid_argument(in_quotes(parameter.name) + " is " +
                                shape_text(parameter.shape.rows, parameter.shape.cols) +
                                ", but its whole matrix was given as " + shape_text(whole.rows(), whole.cols()));
  if (tp < 1 || tp_rank < 0 || tp_rank >= tp)
    throw std::invalid_argument("TP rank " + std::to_string(tp_rank) + " of " + std::to_string(tp) + " does not exist");
  if ((by_rows && whole.rows() % tp != 0) || (by_columns && whole.cols() % tp != 0))
    throw std::invalid_argument(in_quotes(parameter.name) + " can't be cut into " + std::to_string(tp) +
                                " equal slices of " + split_name(parameter.tp_split_dim));

  Matrix slice(by_rows ? whole.rows() / tp : whole.rows(), by_columns ? whole.cols() / tp : whole.cols());
  const Index first_row = by_rows ? slice.rows() * tp_rank : 0;
  const Index first_col = by_columns ? slice.cols() * tp_rank : 0;
  for (Index i = 0; i < slice.rows(); ++i)
    for (Index j = 0; j < slice.cols(); ++j) slice(i, j) = whole(first_row + i, first_col + j);
  return {parameter.name, std::move(slice), first_row, first_col};
}

void append_of(const std::string& whose, std::vector<NamedMatrix> slices, std::vector<NamedMatrix>& all) {
  for (NamedMatrix& slice : slices) {
    slice.name = whose + ": " + slice.name;
    all.push_back(std::move(slice));
  }
}

}  // namespace muonwalk
