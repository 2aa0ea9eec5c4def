#include "src/model/experts.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "src/layout/slicing.hpp"
#include "src/model/exponential.hpp"
#include "src/model/lane_sum.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk {
namespace {

// Shares and slots from scores (rows × experts).
void route_rows(const Matrix& scores, Index chosen, Index capacity, ExpertsSaved& saved) {
  const Index experts = scores.cols();
  saved.shares = Matrix(scores.rows(), experts);
  saved.slots.assign(static_cast<std::size_t>(experts * capacity), -1);
  std::vector<std::size_t> best(static_cast<std::size_t>(experts)), taken(best.size());
  for (Index t = 0; t < scores.rows(); ++t) {
    const float* row = scores.data() + t * experts;
    std::iota(best.begin(), best.end(), std::size_t{0});
    std::stable_sort(best.begin(), best.end(), [row](std::size_t a, std::size_t b) { return row[a] > row[b]; });
    float sum = 0;
    for (Index i = 0; i < chosen; ++i) sum += exponential(row[best[i]] - row[best[0]]);
    for (Index i = 0; i < chosen; ++i) {
      const auto e = static_cast<Index>(best[i]);
      saved.shares(t, e) = exponential(row[e] - row[best[0]]) / sum;
      const auto slot = static_cast<Index>(taken[best[i]]++);
      if (slot < capacity) saved.slots[static_cast<std::size_t>(e * capacity + slot)] = t;
    }
  }
}

// Calls work(slot, row, expert) for each slot that has a row in it.
template <class Work>
void for_each_slot(const ExpertsSaved& saved, const Work& work) {
  const Index capacity = static_cast<Index>(saved.slots.size()) / saved.shares.cols();
  for (Index slot = 0; slot < static_cast<Index>(saved.slots.size()); ++slot)
    if (saved.slots[static_cast<std::size_t>(slot)] >= 0)
      work(slot, saved.slots[static_cast<std::size_t>(slot)], slot / capacity);
}

// What `expert` makes of each block of rows that came, of `blocks` equal ones, back where they came from.
Matrix at_experts(const Sharers& sharers, Matrix slots, Index blocks,
                  const std::function<Matrix(std::size_t block, Matrix rows)>& expert) {
  Matrix all = sharers.exchange_rows(std::move(slots));
  const Index rows = all.rows() / blocks;
  for (Index block = 0; block < blocks; ++block) {
    const Matrix some = expert(static_cast<std::size_t>(block), row_slice(all, {block * rows, (block + 1) * rows}));
    std::copy_n(some.data(), some.size(), all.data() + block * some.size());
  }
  return sharers.exchange_rows(std::move(all));
}

}  // namespace

Matrix mixture_of_experts(const GptConfig& config, const LayerTensors& tensors, const Sharers& sharers, const Matrix& x,
                          ExpertsSaved& saved) {
  const Index width = x.cols();
  route_rows(chain_product(x, transposed(tensors.router), sharers.threads()), config.chosen, config.capacity(x.rows()),
             saved);

  Matrix slots(static_cast<Index>(saved.slots.size()), width);
  for_each_slot(saved, [&](Index slot, Index row, Index) {
    std::copy_n(x.data() + row * width, width, slots.data() + slot * width);
  });
  saved.inputs.resize(static_cast<std::size_t>(config.experts));
  saved.mlps.resize(static_cast<std::size_t>(config.experts));
  saved.outputs = at_experts(sharers, std::move(slots), config.experts, [&](std::size_t block, Matrix rows) {
    saved.inputs[block] = std::move(rows);
    return mlp(config.pieces / sharers.size(), tensors.experts[block % tensors.experts.size()], sharers,
               saved.inputs[block], saved.mlps[block]);
  });

  Matrix out(x.rows(), width);
  for_each_slot(saved, [&](Index slot, Index row, Index expert) {
    for (Index c = 0; c < width; ++c) out(row, c) += saved.shares(row, expert) * saved.outputs(slot, c);
  });
  return out;
}

Matrix mixture_of_experts_backward(const GptConfig& config, const LayerTensors& tensors, const Sharers& sharers,
                                   const Matrix& x, const ExpertsSaved& saved, const Matrix& d_out,
                                   LayerTensors& gradients) {
  const Index width = x.cols();
  Matrix slots(saved.outputs.rows(), width), d_shares(x.rows(), config.experts);
  for_each_slot(saved, [&](Index slot, Index row, Index expert) {
    d_shares(row, expert) = lane_dot(d_out.data() + row * width, saved.outputs.data() + slot * width, width);
    for (Index c = 0; c < width; ++c) slots(slot, c) = saved.shares(row, expert) * d_out(row, c);
  });
  slots = at_experts(sharers, std::move(slots), config.experts, [&](std::size_t block, const Matrix& d_rows) {
    return mlp_backward(config.pieces / sharers.size(), tensors.experts[block % tensors.experts.size()], sharers,
                        saved.inputs[block], saved.mlps[block], d_rows, gradients.experts[block]);
  });
  Matrix d_x(x.rows(), width);
  for_each_slot(saved, [&](Index slot, Index row, Index) {
    for (Index c = 0; c < width; ++c) d_x(row, c) += slots(slot, c);
  });

  // The router: backward through the softmax of the chosen scores.
  Matrix d_scores(x.rows(), config.experts);
  for (Index t = 0; t < x.rows(); ++t) {
    float mean = 0;
    for (Index e = 0; e < config.experts; ++e) mean += saved.shares(t, e) * d_shares(t, e);
    for (Index e = 0; e < config.experts; ++e) d_scores(t, e) = saved.shares(t, e) * (d_shares(t, e) - mean);
  }
  chain_product(transposed(d_scores), x, gradients.router, Sums::go_on, sharers.threads());
  chain_product(d_scores, tensors.router, d_x, Sums::go_on, sharers.threads());
  return d_x;
}

}  // namespace muonwalk
