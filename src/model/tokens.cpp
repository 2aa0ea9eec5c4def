#include "src/model/tokens.hpp"

#include <algorithm>
#include <cmath>

#include "src/model/exponential.hpp"
#include "src/model/lane_sum.hpp"
#include "src/numerics/products.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

// The vocabulary that this sharer has, given how many rows that is.
Range own_tokens(Index rows, const Sharers& sharers) { return {rows * sharers.rank(), rows * (sharers.rank() + 1)}; }

bool contains(Range range, Index number) { return range.begin <= number && number < range.end; }

}  // namespace

Matrix embed(const GptConfig& config, const Matrix& embedding, const Sharers& sharers,
             const std::vector<std::int32_t>& tokens) {
  const Range own = own_tokens(embedding.rows(), sharers);
  Matrix out(static_cast<Index>(tokens.size()), config.width);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    float* row = out.data() + static_cast<Index>(t) * config.width;
    // −0 is what leaves every number as it is when it is added; +0 would make +0 of a −0.
    if (contains(own, tokens[t]))
      std::copy_n(embedding.data() + (tokens[t] - own.begin) * config.width, config.width, row);
    else
      std::fill_n(row, config.width, -0.0f);
  }
  sharers.leave_forward(out);
  return out;
}

void embed_backward(const Sharers& sharers, const std::vector<std::int32_t>& tokens, const Matrix& d_out,
                    Matrix& gradient) {
  const Range own = own_tokens(gradient.rows(), sharers);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (!contains(own, tokens[t])) continue;
    float* row = gradient.data() + (tokens[t] - own.begin) * gradient.cols();
    for (Index c = 0; c < gradient.cols(); ++c) row[c] += d_out(static_cast<Index>(t), c);
  }
}

Flat cross_entropy(const GptConfig& config, const Matrix& output, const Sharers& sharers, const Matrix& x,
                   const std::vector<std::int32_t>& targets, LossSaved& saved) {
  const Index rows = x.rows(), pieces = config.pieces / sharers.size(), piece = output.rows() / pieces;
  const Range own = own_tokens(output.rows(), sharers);
  saved.logits = chain_product(x, transposed(output), sharers.threads());

  // Of each of my pieces three rows: the largest logit, Σ e^(logit − largest), and the target's logit if it is here.
  Matrix mine(3 * pieces, rows);
  Flat terms(static_cast<std::size_t>(piece));
  for (Index t = 0; t < rows; ++t)
    for (Index p = 0; p < pieces; ++p) {
      const float* logits = saved.logits.data() + t * output.rows() + p * piece;
      const float most = *std::max_element(logits, logits + piece);
      for (Index i = 0; i < piece; ++i) terms[static_cast<std::size_t>(i)] = logits[i] - most;
      exponentials(terms.data(), piece);
      mine(3 * p, t) = most;
      mine(3 * p + 1, t) = lane_sum(terms.data(), piece);
      const Index target = targets[static_cast<std::size_t>(t)] - own.begin - p * piece;
      if (0 <= target && target < piece) mine(3 * p + 2, t) = logits[target];
    }
  const Matrix all = sharers.all_gather_rows(std::move(mine));

  Flat losses(static_cast<std::size_t>(rows)), leaves(static_cast<std::size_t>(config.pieces));
  saved.most.resize(losses.size());
  saved.sum.resize(losses.size());
  for (Index t = 0; t < rows; ++t) {
    const auto at = static_cast<std::size_t>(t);
    float most = all(0, t);
    for (Index p = 1; p < config.pieces; ++p) most = std::max(most, all(3 * p, t));
    for (Index p = 0; p < config.pieces; ++p)
      leaves[static_cast<std::size_t>(p)] = all(3 * p + 1, t) * exponential(all(3 * p, t) - most);
    const float sum = tree_sum(leaves.data(), config.pieces);
    const float target = all(3 * (targets[at] / piece) + 2, t);
    saved.most[at] = most;
    saved.sum[at] = sum;
    losses[at] = (most - target) + static_cast<float>(std::log(static_cast<double>(sum)));
  }
  return losses;
}

Matrix cross_entropy_backward(const GptConfig& config, const Matrix& output, const Sharers& sharers, const Matrix& x,
                              const std::vector<std::int32_t>& targets, float scale, LossSaved& saved,
                              Matrix& gradient) {
  const Index rows = x.rows(), cols = output.rows();
  const Range own = own_tokens(cols, sharers);
  Matrix d_logits = std::move(saved.logits);
  for (Index t = 0; t < rows; ++t) {
    const auto at = static_cast<std::size_t>(t);
    float* row = d_logits.data() + t * cols;
    for (Index i = 0; i < cols; ++i) row[i] -= saved.most[at];
    exponentials(row, cols);
    for (Index i = 0; i < cols; ++i) row[i] = row[i] / saved.sum[at] * scale;
    if (contains(own, targets[at])) row[targets[at] - own.begin] -= scale;
  }
  chain_product(transposed(d_logits), x, gradient, Sums::go_on, sharers.threads());
  const Index pieces = config.pieces / sharers.size(), piece = cols / pieces;
  Matrix d_x = sum_of_leaves(pieces, [&](Index p) {
    return chain_product(part_of(d_logits, 0, rows, p * piece, piece), part_of(output, p * piece, piece, 0, x.cols()),
                         sharers.threads());
  });
  sharers.enter_backward(d_x);
  return d_x;
}

}  // namespace muonwalk
