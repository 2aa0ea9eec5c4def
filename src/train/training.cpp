#include "src/train/training.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"
#include "src/text/names.hpp"
#include "src/train/models.hpp"

namespace muonwalk {
namespace {

// Weights take the tensor numbers from 0 up, gradients those from here on: no two tensors share random numbers.
constexpr std::uint64_t kFirstGradient = std::uint64_t{1} << 63;

/// The part `rows` × `columns` of the random matrix `key` that has `full_cols` columns.
Matrix random_part(RandomTensor key, Index full_cols, Range rows, Range columns) {
  Matrix part(rows.size(), columns.size());
  for (Index i = 0; i < part.rows(); ++i)
    random_values(key, static_cast<std::uint64_t>((rows.begin + i) * full_cols + columns.begin), part.cols(),
                  part.data() + i * part.cols());
  return part;
}

}  // namespace

std::vector<Matrix> Training::own_gradients(int step, int dp, int dp_rank, const std::vector<NamedMatrix>& held) const {
  const int leaves = leaves_per_rank(dp);
  std::vector<std::vector<Matrix>> parts;
  for (int leaf = 0; leaf < leaves; ++leaf) parts.push_back(gradients(step, dp_rank * leaves + leaf, held));
  for (std::size_t p = 0; p < held.size(); ++p) {
    std::vector<const float*> values;
    for (const std::vector<Matrix>& part : parts) values.push_back(part[p].data());
    tree_sum(values, parts[0][p].size(), parts[0][p].data());
  }
  return std::move(parts[0]);
}

std::vector<std::vector<Matrix>> Training::all_leaves(int step, int dp, const std::vector<NamedMatrix>& weights) const {
  std::vector<std::vector<Matrix>> leaves;
  for (int leaf = 0; leaf < dp * leaves_per_rank(dp); ++leaf) leaves.push_back(gradients(step, leaf, weights));
  return leaves;
}

std::vector<NamedMatrix> Training::first_weights() const {
  std::vector<NamedMatrix> all;
  for (const Parameter& parameter : parameters())
    all.push_back({parameter.name, weights(static_cast<int>(all.size()))});
  return all;
}

int Training::parameter_number(const std::string& name) const {
  const auto found = std::find_if(parameters().begin(), parameters().end(),
                                  [&name](const Parameter& parameter) { return parameter.name == name; });
  if (found == parameters().end())
    throw std::invalid_argument(in_quotes(name) + " is not one of the trained parameters");
  return static_cast<int>(found - parameters().begin());
}

RandomTraining::RandomTraining(std::vector<Parameter> parameters, int steps, std::uint64_t seed)
    : parameters_(std::move(parameters)), steps_(steps), seed_(seed) {}

int RandomTraining::leaves_per_rank(int dp) const { return dp == 1 ? 4 : dp == 2 ? 2 : 1; }

Matrix RandomTraining::weights(int p) const {
  const Shape full = parameters_[static_cast<std::size_t>(p)].shape;
  return random_matrix({seed_, static_cast<std::uint64_t>(p)}, full.rows, full.cols);
}

std::vector<Matrix> RandomTraining::gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const {
  std::vector<Matrix> parts;
  for (const NamedMatrix& each : held) {
    const int p = parameter_number(each.name);
    const auto tensor = kFirstGradient + ((static_cast<std::uint64_t>(step) << 40) |
                                          (static_cast<std::uint64_t>(leaf) << 20) | static_cast<std::uint64_t>(p));
    parts.push_back(random_part({seed_, tensor}, parameters_[static_cast<std::size_t>(p)].shape.cols,
                                {each.first_row, each.first_row + each.matrix.rows()},
                                {each.first_col, each.first_col + each.matrix.cols()}));
  }
  return parts;
}

Buckets first_buckets(const Layout& layout, const Training& training, int tp_rank) {
  std::vector<Matrix> slices;
  for (const DistMeta& meta : layout.parameters()) {
    const std::size_t p = static_cast<std::size_t>(meta.parameter);
    if (slices.size() <= p) slices.resize(p + 1);
    slices[p] =
        tp_slice(training.weights(training.parameter_number(meta.name)), meta.tp_split_dim, layout.grid.tp(), tp_rank);
  }
  return pack_slices(layout, slices);
}

std::vector<Matrix> join_held_slices(const std::vector<Parameter>& parameters, const Grid& grid,
                                     const std::vector<std::vector<NamedMatrix>>& held) {
  std::vector<Matrix> whole;
  for (int stage = 0; stage < grid.pp(); ++stage) {
    const Range mine = stage_parameters(static_cast<int>(parameters.size()), grid.pp(), stage);
    for (Index p = mine.begin; p < mine.end; ++p) {
      std::vector<const Matrix*> slices;
      for (int tp = 0; tp < grid.tp(); ++tp)
        slices.push_back(
            &held[static_cast<std::size_t>(grid.rank(0, tp, stage))][static_cast<std::size_t>(p - mine.begin)].matrix);
      whole.push_back(join_slices(slices, parameters[static_cast<std::size_t>(p)].tp_split_dim));
    }
  }
  return whole;
}

ReferenceRun::ReferenceRun(const Training& training, std::unique_ptr<Optimizer> optimizer, Index most_elements,
                           MuonMemory kept)
    : training_(training), optimizer_(std::move(optimizer)), first_(std::move(kept)) {
  Index elements = 0;
  for (const Parameter& parameter : training.parameters()) elements += parameter.shape.size();
  most_results_ = static_cast<std::size_t>(most_elements / std::max<Index>(elements, 1));
}

const std::vector<NamedMatrix>& ReferenceRun::after(int step, int dp) {
  const int leaves = dp * training_.leaves_per_rank(dp);
  if (leaves != leaves_) {
    serial_.reset();
    results_.clear();
    leaves_ = leaves;
  }
  if (step <= static_cast<int>(results_.size())) return results_[static_cast<std::size_t>(step - 1)];
  if (serial_ == nullptr || step < done_) {
    serial_ = optimizer_->reference(training_.first_weights());
    serial_->go_on_from(first_);
    done_ = 0;
  }
  while (done_ < step) {
    serial_->step(training_.all_leaves(done_, dp, serial_->parameters()));
    if (done_++ == static_cast<int>(results_.size()) && results_.size() < most_results_)
      results_.push_back(serial_->parameters());
  }
  return serial_->parameters();
}

MuonMemory ReferenceRun::kept() const {
  MuonMemory kept;
  if (serial_ != nullptr) serial_->keep_in(kept);
  return kept;
}

std::vector<NamedMatrix> ReferenceRun::slices_after(int step, const Grid& grid, const Place& place) {
  const std::vector<Parameter>& parameters = training_.parameters();
  const Range mine = stage_parameters(static_cast<int>(parameters.size()), grid.pp(), place.pp);
  const std::vector<NamedMatrix>& whole = after(step, grid.dp());
  std::vector<NamedMatrix> slices;
  for (Index p = mine.begin; p < mine.end; ++p)
    slices.push_back(named_slice(parameters[static_cast<std::size_t>(p)], whole[static_cast<std::size_t>(p)].matrix,
                                 grid.tp(), place.tp));
  return slices;
}

}  // namespace muonwalk
