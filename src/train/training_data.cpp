#include "src/train/training_data.hpp"

#include <utility>

#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

// Weights take the tensor numbers from 0 on, gradients those from here on: no two tensors share random numbers.
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

Matrix TrainingData::own_gradient(int step, int p, int dp, int dp_rank, Range rows, Range columns) const {
  const int leaves = leaves_per_rank(dp);
  std::vector<Matrix> parts;
  std::vector<const float*> values;
  for (int leaf = 0; leaf < leaves; ++leaf) parts.push_back(gradient(step, dp_rank * leaves + leaf, p, rows, columns));
  for (const Matrix& part : parts) values.push_back(part.data());
  tree_sum(values, parts[0].size(), parts[0].data());
  return std::move(parts[0]);
}

std::vector<std::vector<Matrix>> TrainingData::all_leaves(int step, int dp) const {
  std::vector<std::vector<Matrix>> leaves(static_cast<std::size_t>(dp * leaves_per_rank(dp)));
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (std::size_t p = 0; p < parameters().size(); ++p) {
      const Shape full = parameters()[p].shape;
      leaves[leaf].push_back(
          gradient(step, static_cast<int>(leaf), static_cast<int>(p), {0, full.rows}, {0, full.cols}));
    }
  return leaves;
}

RandomTraining::RandomTraining(std::vector<Parameter> parameters, int steps, std::uint64_t seed)
    : parameters_(std::move(parameters)), steps_(steps), seed_(seed) {}

int RandomTraining::leaves_per_rank(int dp) const { return dp == 1 ? 4 : dp == 2 ? 2 : 1; }

Matrix RandomTraining::weights(int p) const {
  const Shape full = parameters_[static_cast<std::size_t>(p)].shape;
  return random_matrix({seed_, static_cast<std::uint64_t>(p)}, full.rows, full.cols);
}

Matrix RandomTraining::gradient(int step, int leaf, int p, Range rows, Range columns) const {
  const auto tensor = kFirstGradient + ((static_cast<std::uint64_t>(step) << 40) |
                                        (static_cast<std::uint64_t>(leaf) << 20) | static_cast<std::uint64_t>(p));
  return random_part({seed_, tensor}, parameters_[static_cast<std::size_t>(p)].shape.cols, rows, columns);
}

std::vector<Matrix> own_gradient_slices(const TrainingData& data, const std::vector<int>& mine, int step,
                                        const Grid& grid, const Place& place) {
  std::vector<Matrix> slices;
  for (int p : mine) {
    const Parameter& parameter = data.parameters()[static_cast<std::size_t>(p)];
    const Range part = tp_range(parameter, grid.tp(), place.tp);
    const bool by_columns = parameter.tp_split_dim == SplitDim::columns;
    const Range rows = by_columns ? Range{0, parameter.shape.rows} : part;
    const Range columns = by_columns ? part : Range{0, parameter.shape.cols};
    slices.push_back(data.own_gradient(step, p, grid.dp(), place.dp, rows, columns));
  }
  return slices;
}

MuonState initial_state(const Layout& layout, const TrainingData& data, const std::vector<int>& mine, int tp_rank) {
  std::vector<Matrix> whole;
  std::vector<const Matrix*> pointers;
  for (int p : mine) whole.push_back(data.weights(p));
  for (const Matrix& matrix : whole) pointers.push_back(&matrix);
  return initial_state(layout, pointers, tp_rank);
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

const std::vector<NamedMatrix>& ReferenceRun::after(int step, int dp) {
  const int leaves = dp * data_.leaves_per_rank(dp);
  if (serial_ == nullptr || leaves != leaves_) {
    std::vector<NamedMatrix> parameters;
    for (std::size_t p = 0; p < data_.parameters().size(); ++p)
      parameters.push_back({data_.parameters()[p].name, data_.weights(static_cast<int>(p))});
    serial_ = std::make_unique<SerialMuon>(std::move(parameters), settings_);
    results_.clear();
    leaves_ = leaves;
  }
  while (static_cast<int>(results_.size()) < step) {
    serial_->step(data_.all_leaves(static_cast<int>(results_.size()), dp));
    results_.push_back(serial_->parameters());
  }
  return results_[static_cast<std::size_t>(step - 1)];
}

std::vector<Parameter> proof_of_concept_parameters() {
  return {{"w0", {100, 100}, SplitDim::rows, 0},
          {"w1", {124, 324}, SplitDim::columns, 0},
          {"w2", {456, 124}, SplitDim::none, 0},
          {"w3", {676, 876}, SplitDim::columns, 0},
          {"w4", {128, 128}, SplitDim::rows, 0}};
}

std::vector<Parameter> small_parameters() {
  std::vector<Parameter> parameters = proof_of_concept_parameters();
  const Shape shapes[] = {{12, 12}, {16, 40}, {56, 16}, {84, 108}, {16, 16}};
  for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p].shape = shapes[p];
  return parameters;
}

Range stage_parameters(int parameters, int stages, int stage) {
  return {Index{parameters} * stage / stages, Index{parameters} * (stage + 1) / stages};
}

}  // namespace muonwalk
