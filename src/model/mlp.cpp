#include "src/model/mlp.hpp"

#include "src/model/exponential.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk {

void swiglu(const MlpTensors& tensors, const Sharers& sharers, const Matrix& x, MlpSaved& saved) {
  saved.gate = chain_product(x, transposed(tensors.gate), sharers.threads());
  saved.up = chain_product(x, transposed(tensors.up), sharers.threads());
  saved.hidden = Matrix(x.rows(), tensors.gate.rows());
  for (Index i = 0; i < saved.gate.size(); ++i) saved.hidden.data()[i] = -saved.gate.data()[i];
  exponentials(saved.hidden.data(), saved.hidden.size());
  for (Index i = 0; i < saved.gate.size(); ++i)
    saved.hidden.data()[i] = saved.gate.data()[i] / (1.0f + saved.hidden.data()[i]) * saved.up.data()[i];
}

Matrix swiglu_backward(const MlpSaved& saved, Matrix& d_hidden) {
  Matrix d_up(d_hidden.rows(), d_hidden.cols());
  for (Index i = 0; i < d_up.size(); ++i) d_up.data()[i] = -saved.gate.data()[i];
  exponentials(d_up.data(), d_up.size());
  for (Index i = 0; i < d_up.size(); ++i) {
    const float a = saved.gate.data()[i], d = d_hidden.data()[i];
    const float sigmoid = 1.0f / (1.0f + d_up.data()[i]);
    d_hidden.data()[i] = d * saved.up.data()[i] * (sigmoid * (1.0f + a * (1.0f - sigmoid)));
    d_up.data()[i] = d * (a * sigmoid);
  }
  return d_up;
}

Matrix mlp(Index pieces, const MlpTensors& tensors, const Sharers& sharers, const Matrix& x, MlpSaved& saved) {
  swiglu(tensors, sharers, x, saved);
  const Index rows = x.rows(), piece = saved.hidden.cols() / pieces;
  Matrix out = sum_of_leaves(pieces, [&](Index p) {
    return chain_product(part_of(saved.hidden, 0, rows, p * piece, piece),
                         transposed(part_of(tensors.down, 0, x.cols(), p * piece, piece)), sharers.threads());
  });
  sharers.leave_forward(out);
  return out;
}

Matrix mlp_backward(Index pieces, const MlpTensors& tensors, const Sharers& sharers, const Matrix& x,
                    const MlpSaved& saved, const Matrix& d_out, MlpTensors& gradients) {
  const int threads = sharers.threads();
  chain_product(transposed(d_out), saved.hidden, gradients.down, Sums::go_on, threads);
  Matrix d_gate = chain_product(d_out, tensors.down, threads);
  Matrix d_up = swiglu_backward(saved, d_gate);
  chain_product(transposed(d_gate), x, gradients.gate, Sums::go_on, threads);
  chain_product(transposed(d_up), x, gradients.up, Sums::go_on, threads);

  const Index rows = x.rows(), piece = d_gate.cols() / pieces;
  Matrix d_x = sum_of_leaves(pieces, [&](Index p) {
    Matrix leaf = chain_product(part_of(d_gate, 0, rows, p * piece, piece),
                                part_of(tensors.gate, p * piece, piece, 0, x.cols()), threads);
    chain_product(part_of(d_up, 0, rows, p * piece, piece), part_of(tensors.up, p * piece, piece, 0, x.cols()), leaf,
                  Sums::go_on, threads);
    return leaf;
  });
  sharers.enter_backward(d_x);
  return d_x;
}

}  // namespace muonwalk
