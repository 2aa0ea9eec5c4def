#include "sim/lesson_10/toy_training.hpp"

#include <doctest/doctest.h>

#include "src/optim/named_slice.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const std::vector<Parameter> kParameters = {{"a", {4, 6}, SplitDim::rows}, {"b", {6, 8}, SplitDim::columns}};

using HeldMatrices = std::vector<std::vector<NamedMatrix>>;

HeldMatrices held_by(const ToyTraining& training, const Grid& grid, float more) {
  HeldMatrices held;
  for (int rank = 0; rank < grid.size(); ++rank) {
    held.emplace_back();
    for (const NamedMatrix& whole : training.first_weights()) {
      const Parameter& parameter = kParameters[static_cast<std::size_t>(training.parameter_number(whole.name))];
      held.back().push_back(named_slice(parameter, whole.matrix, grid.tp(), grid.place(rank).tp));
      for (Index at = 0; at < held.back().back().matrix.size(); ++at) held.back().back().matrix.data()[at] += more;
    }
  }
  return held;
}

}  // namespace

TEST_CASE("toy training: the gradients of a slice are those of the whole, bit for bit") {
  const ToyTraining training(kParameters, 3, 7);
  const std::vector<NamedMatrix> whole = training.first_weights();
  for (int step = 0; step < 2; ++step)
    for (int leaf = 0; leaf < 4; ++leaf) {
      const std::vector<Matrix> all = training.gradients(step, leaf, whole);
      for (int tp = 0; tp < 2; ++tp) {
        std::vector<NamedMatrix> slices;
        for (std::size_t p = 0; p < 2; ++p) slices.push_back(named_slice(kParameters[p], whole[p].matrix, 2, tp));
        const std::vector<Matrix> parts = training.gradients(step, leaf, slices);
        for (std::size_t p = 0; p < 2; ++p)
          CHECK(same_bits(parts[p], named_slice(kParameters[p], all[p], 2, tp).matrix));
      }
    }
}

TEST_CASE("toy training: the loss does not depend on the grid, and the gradients lead downhill") {
  const ToyTraining training(kParameters, 3, 7);
  const double loss = training.loss(Grid(), held_by(training, Grid(), 0));
  CHECK(training.loss(Grid().dp(2).tp(2), held_by(training, Grid().dp(2).tp(2), 0)) == doctest::Approx(loss));
  HeldMatrices moved = held_by(training, Grid(), 0);
  const std::vector<Matrix> gradients = training.own_gradients(0, 1, 0, moved[0]);
  for (std::size_t p = 0; p < 2; ++p)
    for (Index at = 0; at < gradients[p].size(); ++at) moved[0][p].matrix.data()[at] -= 0.1f * gradients[p].data()[at];
  CHECK(training.loss(Grid(), moved) < 0.9 * loss);
  CHECK(training.loss(Grid(), held_by(training, Grid(), 5)) > 2 * loss);
}

TEST_CASE("toy training: the text of a loss says that it falls only where it falls in every step") {
  CHECK(loss_text({}).empty());
  CHECK(loss_text({2}) == "loss 2.00");
  CHECK(loss_text({2, 1.5, 1.25}) == "loss 2.00 → 1.50 → 1.25: it falls in every step");
  CHECK(loss_text({2, 1.5, 1.5}) == "loss 2.00 → 1.50 → 1.50");
  CHECK(loss_text({2, 2.5, 1}) == "loss 2.00 → 2.50 → 1.00");
}
