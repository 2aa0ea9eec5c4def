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

std::string shape_text(const Matrix& x) { return muonwalk::shape_text(x.rows(), x.cols()); }

}  // namespace

const char* products_name(Products products) { return products == Products::eigen ? "eigen" : "chain"; }

void multiply(const Matrix& left, const Matrix& right, Matrix& out, int threads) {
  if (left.cols() != right.rows()) {
    throw std::invalid_argument("cannot multiply " + shape_text(left) + " by " + shape_text(right) +
                                ": the left factor needs as many columns as the right one has rows");
  }
  prepare(left, right, out, left.rows(), right.cols());
  ChainProduct product;
  product.rows = left.rows();
  product.cols = right.cols();
  product.depth = left.cols();
  product.left = left.data();
  product.right = right.data();
  product.out = out.data();
  compute(product, threads);
}

void symmetric_product(const Matrix& left, const Matrix& right, Matrix& out, int threads) {
  if (left.rows() != right.rows() || left.cols() != right.cols()) {
    throw std::invalid_argument("the symmetric product of " + shape_text(left) + " and " + shape_text(right) +
                                " does not exist: both factors need the same shape");
  }
  prepare(left, right, out, left.rows(), left.rows());
  ChainProduct product;
  product.rows = product.cols = left.rows();
  product.depth = left.cols();
  product.left = left.data();
  product.right = right.data();
  product.right_transposed = true;
  product.symmetric = true;
  product.out = out.data();
  compute(product, threads);
}

}  // namespace muonwalk
