#include "src/train/training_data.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "src/layout/slicing.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/named_slice.hpp"

using namespace muonwalk;

namespace {

// All leaves of parameter p, added as one balanced tree.
Matrix summed(const std::vector<std::vector<Matrix>>& leaves, std::size_t p) {
  std::vector<const float*> values;
  for (const auto& leaf : leaves) values.push_back(leaf[p].data());
  Matrix sum(leaves[0][p].rows(), leaves[0][p].cols());
  tree_sum(values, sum.size(), sum.data());
  return sum;
}

}  // namespace

TEST_CASE("RandomTraining: a rank's part of a gradient has the bits of that part of the whole") {
  const RandomTraining data(
      {{"a", {6, 8}, SplitDim::rows}, {"b", {9, 4}, SplitDim::columns}, {"c", {3, 5}, SplitDim::none}}, 3, 5);
  const std::vector<int> all = {0, 1, 2};
  for (int dp = 1; dp <= 5; ++dp)
    for (int tp : {1, 2}) {
      const Grid grid = Grid().dp(dp).tp(tp);
      const auto leaves = data.all_leaves(1, dp);
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Place place = grid.place(rank);
        const auto own = own_gradient_slices(data, all, 1, grid, place);
        const int count = data.leaves_per_rank(dp);
        for (std::size_t p = 0; p < all.size(); ++p) {
          const std::vector<std::vector<Matrix>> mine(leaves.begin() + place.dp * count,
                                                      leaves.begin() + (place.dp + 1) * count);
          INFO("dp ", dp, " tp ", tp, " rank ", rank, " parameter ", p);
          CHECK(same_bits(own[p], tp_slice(summed(mine, p), data.parameters()[p].tp_split_dim, tp, place.tp)));
        }
      }
    }
}

TEST_CASE("TrainingData: adding rank by rank gives the bits of adding all leaves at once, for every dp") {
  const RandomTraining data({{"a", {16, 16}, SplitDim::none}}, 1, 9);
  for (int dp = 1; dp <= 9; ++dp) {
    std::vector<Matrix> by_rank;
    std::vector<const float*> values;
    for (int r = 0; r < dp; ++r) by_rank.push_back(data.own_gradient(0, 0, dp, r, {0, 16}, {0, 16}));
    for (const Matrix& part : by_rank) values.push_back(part.data());
    Matrix sum(16, 16);
    tree_sum(values, sum.size(), sum.data());
    CAPTURE(dp);
    CHECK(same_bits(sum, summed(data.all_leaves(0, dp), 0)));
  }
}

TEST_CASE("RandomTraining: dp 1, 2 and 4 are fed the same leaves, so their gradients have the same bits") {
  const RandomTraining data({{"a", {16, 16}, SplitDim::none}}, 1, 9);
  const Matrix one = summed(data.all_leaves(0, 1), 0);
  CHECK(same_bits(one, summed(data.all_leaves(0, 2), 0)));
  CHECK(same_bits(one, summed(data.all_leaves(0, 4), 0)));
  CHECK_FALSE(same_bits(one, summed(data.all_leaves(0, 8), 0)));
}

TEST_CASE("RandomTraining: no two tensors share their numbers") {
  const RandomTraining data({{"a", {4, 4}, SplitDim::none}, {"b", {4, 4}, SplitDim::none}}, 3, 1);
  std::vector<Matrix> tensors = {data.weights(0), data.weights(1)};
  for (int step = 0; step < 3; ++step)
    for (const auto& leaf : data.all_leaves(step, 4)) tensors.insert(tensors.end(), leaf.begin(), leaf.end());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(same_bits(tensors[i], tensors[j]));
}

TEST_CASE("ReferenceRun: results do not depend on the order in which they are asked for") {
  const RandomTraining data({{"a", {6, 8}, SplitDim::none}}, 3, 5);
  ReferenceRun forth(data, MuonSettings()), back(data, MuonSettings());
  const Matrix first = forth.after(1, 2)[0].matrix, third = forth.after(3, 2)[0].matrix;
  CHECK(same_bits(back.after(3, 2)[0].matrix, third));
  CHECK(same_bits(back.after(1, 4)[0].matrix, first));  // dp 2 and dp 4 have the same leaves
  CHECK_FALSE(same_bits(back.after(1, 3)[0].matrix, first));
}

TEST_CASE("stage_parameters: every parameter belongs to one stage, and stages differ by at most one parameter") {
  for (int parameters = 1; parameters <= 20; ++parameters)
    for (int stages = 1; stages <= parameters; ++stages) {
      Index next = 0;
      for (int stage = 0; stage < stages; ++stage) {
        const Range range = stage_parameters(parameters, stages, stage);
        CHECK(range.begin == next);
        CHECK(range.size() >= parameters / stages);
        CHECK(range.size() <= (parameters + stages - 1) / stages);
        next = range.end;
      }
      CHECK(next == parameters);
    }
}

TEST_CASE("join_held_slices: gives back the whole matrices, for any tp and pp, whatever DP ranks above 0 hold") {
  const RandomTraining data(small_parameters(), 1, 7);
  for (int tp : {1, 2, 4})
    for (int pp : {1, 2, 3}) {
      CAPTURE(tp);
      CAPTURE(pp);
      const Grid grid = Grid().dp(2).tp(tp).pp(pp);
      std::vector<std::vector<NamedMatrix>> held(static_cast<std::size_t>(grid.size()));
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Place place = grid.place(rank);
        const Range mine = stage_parameters(static_cast<int>(data.parameters().size()), pp, place.pp);
        for (Index p = mine.begin; p < mine.end && place.dp == 0; ++p)
          held[rank].push_back(named_slice(data.parameters()[p], data.weights(static_cast<int>(p)), tp, place.tp));
      }
      const std::vector<Matrix> whole = join_held_slices(data.parameters(), grid, held);
      REQUIRE(whole.size() == data.parameters().size());
      for (std::size_t p = 0; p < whole.size(); ++p) CHECK(whole[p].flat() == data.weights(static_cast<int>(p)).flat());
    }
}
