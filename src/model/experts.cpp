#include "src/model/experts.hpp"

#include <algorithm>

#include "src/model/exponential.hpp"
#include "src/model/lane_sum.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk {
namespace {

// The rows of a matrix with these numbers, below each other.
Matrix rows_of(const Matrix& x, const std::vector<Index>& rows) {
  Matrix some(static_cast<Index>(rows.size()), x.cols());
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(x.data() + rows[i] * x.cols(), x.cols(), some.data() + static_cast<Index>(i) * x.cols());
  return some;
}

// The largest scores of a row, `chosen` of them: numbers of experts, in order.
std::vector<Index> largest(const float* scores, Index experts, Index chosen) {
  std::vector<Index> order;
  for (Index e = 0; e < experts; ++e) order.push_back(e);
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return scores[a] > scores[b]; });
  order.resize(static_cast<std::size_t>(chosen));
  std::sort(order.begin(), order.end());
  return order;
}

// shares (rows × experts) from scores, and which rows chose which expert.
void route_rows(const Matrix& scores, Index chosen, ExpertsSaved& saved) {
  const Index experts = scores.cols();
  saved.shares = Matrix(scores.rows(), experts);
  saved.rows.assign(static_cast<std::size_t>(experts), {});
  for (Index t = 0; t < scores.rows(); ++t) {
    const float* row = scores.data() + t * experts;
    const std::vector<Index> best = largest(row, experts, chosen);
    float most = row[best[0]], sum = 0;
    for (const Index e : best) most = std::max(most, row[e]);
    for (const Index e : best) sum += exponential(row[e] - most);
    for (const Index e : best) {
      saved.shares(t, e) = exponential(row[e] - most) / sum;
      saved.rows[static_cast<std::size_t>(e)].push_back(t);
    }
  }
}

}  // namespace

Matrix mixture_of_experts(Index pieces, Index chosen, const LayerTensors& tensors, const Sharers& sharers,
                          const Matrix& x, ExpertsSaved& saved) {
  const int threads = sharers.threads();
  Matrix scores(x.rows(), tensors.router.rows());
  chain_product_right_transposed(x, tensors.router, scores, Sums::begin, threads);
  route_rows(scores, chosen, saved);
  const std::size_t experts = tensors.mlps.size();
  saved.inputs.resize(experts);
  saved.mlps.resize(experts);
  for (std::size_t e = 0; e < experts; ++e) {
    saved.inputs[e] = rows_of(x, saved.rows[e]);
    swiglu(tensors.mlps[e], sharers, saved.inputs[e], saved.mlps[e]);
  }

  // A leaf of the sum over hidden channels has all experts' shares of it, in the order of the experts.
  const Index piece = tensors.mlps[0].gate.rows() / pieces;
  Matrix out = sum_of_leaves(pieces, [&](Index p) {
    Matrix leaf(x.rows(), x.cols());
    for (std::size_t e = 0; e < experts; ++e) {
      const Index rows = saved.inputs[e].rows();
      Matrix of_expert(rows, x.cols());
      chain_product_right_transposed(part_of(saved.mlps[e].hidden, 0, rows, p * piece, piece),
                                     part_of(tensors.mlps[e].down, 0, x.cols(), p * piece, piece), of_expert,
                                     Sums::begin, threads);
      for (Index i = 0; i < rows; ++i) {
        const Index t = saved.rows[e][static_cast<std::size_t>(i)];
        const float share = saved.shares(t, static_cast<Index>(e));
        for (Index c = 0; c < x.cols(); ++c) leaf(t, c) += share * of_expert(i, c);
      }
    }
    return leaf;
  });
  sharers.leave_forward(out);
  return out;
}

Matrix mixture_of_experts_backward(Index pieces, const LayerTensors& tensors, const Sharers& sharers, const Matrix& x,
                                   const ExpertsSaved& saved, const Matrix& d_out, LayerTensors& gradients) {
  const int threads = sharers.threads();
  const std::size_t experts = tensors.mlps.size();
  const Index width = x.cols(), piece = tensors.mlps[0].gate.rows() / pieces;

  // The gradient in a share is the product of d_out and the expert's output: a sum over hidden channels, whose leaves
  // come below each other here, `pieces` times rows × experts.
  std::vector<Matrix> d_gates(experts), d_ups(experts);
  Matrix d_shares_of_pieces(pieces, x.rows() * static_cast<Index>(experts));
  for (std::size_t e = 0; e < experts; ++e) {
    const MlpSaved& mlp = saved.mlps[e];
    const Index rows = saved.inputs[e].rows(), hidden = mlp.hidden.cols();
    Matrix d_some = rows_of(d_out, saved.rows[e]);
    Matrix d_hidden(rows, hidden);
    chain_product(d_some, tensors.mlps[e].down, d_hidden, Sums::begin, threads);
    for (Index i = 0; i < rows; ++i) {
      const Index t = saved.rows[e][static_cast<std::size_t>(i)];
      const float share = saved.shares(t, static_cast<Index>(e));
      for (Index p = 0; p < pieces; ++p)
        d_shares_of_pieces(p, t * static_cast<Index>(experts) + static_cast<Index>(e)) =
            lane_dot(d_hidden.data() + i * hidden + p * piece, mlp.hidden.data() + i * hidden + p * piece, piece);
      for (Index c = 0; c < hidden; ++c) d_hidden(i, c) *= share;
      for (Index c = 0; c < width; ++c) d_some(i, c) *= share;
    }
    MlpTensors& gradient = gradients.mlps[e];
    chain_product_left_transposed(d_some, mlp.hidden, gradient.down, Sums::go_on, threads);
    d_ups[e] = swiglu_backward(mlp, d_hidden);
    d_gates[e] = std::move(d_hidden);
    chain_product_left_transposed(d_gates[e], saved.inputs[e], gradient.gate, Sums::go_on, threads);
    chain_product_left_transposed(d_ups[e], saved.inputs[e], gradient.up, Sums::go_on, threads);
  }

  Matrix d_shares = sum_of_leaves(pieces, [&](Index p) {
    Matrix leaf(1, d_shares_of_pieces.cols());
    std::copy_n(d_shares_of_pieces.data() + p * leaf.size(), leaf.size(), leaf.data());
    return leaf;
  });
  sharers.enter_backward(d_shares);

  Matrix d_x = sum_of_leaves(pieces, [&](Index p) {
    Matrix leaf(x.rows(), width);
    for (std::size_t e = 0; e < experts; ++e) {
      const Index rows = saved.inputs[e].rows();
      Matrix of_expert(rows, width);
      chain_product(part_of(d_gates[e], 0, rows, p * piece, piece),
                    part_of(tensors.mlps[e].gate, p * piece, piece, 0, width), of_expert, Sums::begin, threads);
      chain_product(part_of(d_ups[e], 0, rows, p * piece, piece),
                    part_of(tensors.mlps[e].up, p * piece, piece, 0, width), of_expert, Sums::go_on, threads);
      for (Index i = 0; i < rows; ++i) {
        float* row = leaf.data() + saved.rows[e][static_cast<std::size_t>(i)] * width;
        for (Index c = 0; c < width; ++c) row[c] += of_expert(i, c);
      }
    }
    return leaf;
  });
  sharers.enter_backward(d_x);

  // The router, which all sharers have whole: backward through the softmax of the chosen scores.
  Matrix d_scores(x.rows(), static_cast<Index>(experts));
  for (Index t = 0; t < x.rows(); ++t) {
    float mean = 0;
    for (Index e = 0; e < d_scores.cols(); ++e) mean += saved.shares(t, e) * d_shares.data()[t * d_scores.cols() + e];
    for (Index e = 0; e < d_scores.cols(); ++e)
      d_scores(t, e) = saved.shares(t, e) * (d_shares.data()[t * d_scores.cols() + e] - mean);
  }
  chain_product_left_transposed(d_scores, x, gradients.router, Sums::go_on, threads);
  chain_product(d_scores, tensors.router, d_x, Sums::go_on, threads);
  return d_x;
}

}  // namespace muonwalk
