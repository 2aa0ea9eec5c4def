#include "src/numerics/products.hpp"

#include <stdexcept>
#include <string>

#include "src/numerics/chain_product.hpp"

namespace muonwalk {

namespace {

// `out` with that shape, and apart from the factors, which are read until the end.
void prepare(const Matrix& left, const Matrix& right, Matrix& out, Index rows, Index cols) {
  if (&out == &left || &out == &right) {
    throw std::invalid_argument("a product cannot be written over one of its factors; give it a matrix of its own");
  }
  if (out.rows() != rows || out.cols() != cols) out = Matrix(rows, cols);
}

// As it was given.
std::string shape_text(ConstMatrixView x) {
  return x.transposed ? muonwalk::shape_text(x.cols, x.rows) + ", transposed," : muonwalk::shape_text(x.rows, x.cols);
}

// `product` of these; throws where they do not fit.
void compute_views(ChainProduct product, ConstMatrixView left, ConstMatrixView right, MatrixView out, Sums sums,
                   int threads) {
  if (left.rows != out.rows || left.cols != right.rows || right.cols != out.cols)
    throw std::invalid_argument("no product of " + shape_text(left) + " and " + shape_text(right) + " is " +
                                shape_text(out));
  product.rows = out.rows;
  product.cols = out.cols;
  product.depth = left.cols;
  product.left = left.data;
  product.left_row = left.row;
  product.left_transposed = left.transposed;
  product.right = right.data;
  product.right_row = right.row;
  product.right_transposed = right.transposed;
  product.out = out.data;
  product.out_row = out.row;
  if (sums == Sums::go_on) product.addend = out.data;
  compute(product, threads);
}

}  // namespace

ConstMatrixView part_of(const Matrix& whole, Index first_row, Index rows, Index first_col, Index cols) {
  return {whole.data() + first_row * whole.cols() + first_col, rows, cols, whole.cols()};
}

MatrixView part_of(Matrix& whole, Index first_row, Index rows, Index first_col, Index cols) {
  return {whole.data() + first_row * whole.cols() + first_col, rows, cols, whole.cols()};
}

void chain_product(ConstMatrixView left, ConstMatrixView right, MatrixView out, Sums sums, int threads) {
  compute_views({}, left, right, out, sums, threads);
}

Matrix chain_product(ConstMatrixView left, ConstMatrixView right, int threads) {
  Matrix out(left.rows, right.cols);
  chain_product(left, right, out, Sums::begin, threads);
  return out;
}

const char* products_name(Products products) {
  return products == Products::eigen ? "eigen" : products == Products::chain ? "chain" : "tiles";
}

void multiply(const Matrix& left, const Matrix& right, Matrix& out, int threads) {
  if (left.cols() != right.rows()) {
    throw std::invalid_argument("cannot multiply " + shape_text(left) + " by " + shape_text(right) +
                                ": the left factor needs as many columns as the right one has rows");
  }
  prepare(left, right, out, left.rows(), right.cols());
  chain_product(left, right, out, Sums::begin, threads);
}

void symmetric_product(const Matrix& left, const Matrix& right, Matrix& out, int threads) {
  if (left.rows() != right.rows() || left.cols() != right.cols()) {
    throw std::invalid_argument("the symmetric product of " + shape_text(left) + " and " + shape_text(right) +
                                " does not exist: both factors need the same shape");
  }
  prepare(left, right, out, left.rows(), left.rows());
  ChainProduct product;
  product.symmetric = true;
  compute_views(product, left, transposed(right), out, Sums::begin, threads);
}

}  // namespace muonwalk
