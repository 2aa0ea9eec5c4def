#include "src/model/sharers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "src/model/gpt.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/model/memory_sharers.hpp"
#include "tests/model/model_case.hpp"
#include "tests/optim/random_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

constexpr int kMostThreads = 2;

// What one of the sharers found.
struct Found {
  Flat losses;
  std::vector<Matrix> gradients;
};

// The model in parts that end before these layers and at its end, one part after the other on every sharer. What a last
// part finds of the gradient of a tied embedding is where the first part's begins.
Found run_parts(const ModelCase& c, const std::vector<Matrix>& weights, const std::vector<Index>& cuts,
                const Sharers& sharers) {
  const int tp = sharers.size();
  std::vector<ModelPart> parts;
  for (std::size_t i = 0; i <= cuts.size(); ++i)
    parts.push_back(
        {{i == 0 ? 0 : cuts[i - 1], i == cuts.size() ? c.config.layers : cuts[i]}, i == 0, i == cuts.size()});
  const RotaryAngles angles = rotary_angles(c.config);
  const MicroBatch batch = c.batch();
  std::vector<PartTensors> tensors;
  std::vector<PartSaved> saved(parts.size());
  Matrix x;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tensors.push_back(part_tensors(c.config, parts[i], tp,
                                   cut_tensors(part_parameters(c.config, parts[i], tp),
                                               tensors_of_part(c.config, parts[i], weights), tp, sharers.rank())));
    x = part_forward({c.config, parts[i], sharers, angles}, tensors[i], batch, std::move(x), saved[i]);
  }
  Found found;
  found.losses = saved.back().losses;
  Matrix d, of_output;
  std::vector<std::vector<Matrix>> gradients(parts.size());
  for (std::size_t i = parts.size(); i-- > 0;) {
    PartTensors zeros = zeros_like(tensors[i]);
    if (i == 0 && !of_output.empty()) zeros.embedding = of_output;
    d = part_backward({c.config, parts[i], sharers, angles}, tensors[i], batch, c.scale(), std::move(d), saved[i],
                      zeros);
    if (c.config.tied && i > 0 && parts[i].last) std::swap(of_output, zeros.output);
    gradients[i] = listed(std::move(zeros));
  }
  for (std::vector<Matrix>& of_part : gradients)
    for (Matrix& gradient : of_part) found.gradients.push_back(std::move(gradient));
  return found;
}

void check_shared(const ModelCase& c, int tp, const std::vector<Index>& cuts, int threads) {
  INFO(c.text() << "; shared by " << tp << ", " << cuts.size() + 1 << " parts, " << threads << " threads");
  require_sensible(c.config, tp);
  const std::vector<Matrix> weights = c.weights();
  const PartGradients serial =
      serial_leaf(c.config, part_tensors(c.config, whole_model(c.config), 1, weights), c.batch(), c.scale());
  std::vector<Found> found(static_cast<std::size_t>(tp));
  share(tp, threads, [&](const Sharers& sharers) {
    found[static_cast<std::size_t>(sharers.rank())] = run_parts(c, weights, cuts, sharers);
  });
  const std::vector<Parameter> parameters = gpt_parameters(c.config, tp);
  for (int rank = 0; rank < tp; ++rank) {
    INFO("sharer " << rank);
    const Found& mine = found[static_cast<std::size_t>(rank)];
    const float loss = tree_sum(mine.losses.data(), static_cast<Index>(mine.losses.size()));
    CHECK(std::memcmp(&loss, &serial.loss, sizeof loss) == 0);
    REQUIRE(mine.gradients.size() == parameters.size());
    const std::vector<Matrix> expected = cut_tensors(parameters, serial.gradients, tp, rank);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      INFO(parameters[p].name);
      CHECK(same_bits(mine.gradients[p], expected[p]));
    }
  }
}

}  // namespace

TEST_CASE("sharers: however many share a random model, its bits are the same") {
  for (std::uint64_t seed = 200; seed < 225; ++seed) {
    const ModelCase c = random_model(seed, 8);
    Choices choose(seed + 5);
    for (int tp = 1; tp <= c.config.pieces; tp *= 2) {
      if (c.config.kv_heads % tp != 0 && tp % c.config.kv_heads != 0) continue;
      check_shared(c, tp, {}, tp == 1 ? static_cast<int>(choose.between(1, kMostThreads)) : 1);
    }
  }
}

TEST_CASE("sharers: eight of them, and from one head of keys and values to eight") {
  for (const Index kv_heads : {1, 2, 4, 8})
    for (const Index pieces : {8, 16})
      for (const bool tied : {false, true}) {
        ModelCase c;
        c.seed = static_cast<std::uint64_t>(kv_heads * 100 + pieces + tied);
        c.config.vocabulary = 32;
        c.config.width = 32;
        c.config.heads = 16;
        c.config.kv_heads = kv_heads;
        c.config.hidden = 16;
        c.config.tokens = 9;
        c.config.pieces = pieces;
        c.config.tied = tied;
        c.config.experts = tied ? 4 : 0;
        for (const int tp : {2, 4, 8}) check_shared(c, tp, {}, 1);
      }
}

TEST_CASE("sharers: three of them, where sums have three times a power of two of pieces") {
  for (const Index kv_heads : {1, 3})
    for (const Index pieces : {3, 6, 12}) {
      ModelCase c;
      c.seed = static_cast<std::uint64_t>(kv_heads * 100 + pieces);
      c.config.vocabulary = 24;
      c.config.width = 24;
      c.config.heads = 12;
      c.config.kv_heads = kv_heads;
      c.config.hidden = 24;
      c.config.tokens = 9;
      c.config.pieces = pieces;
      check_shared(c, 3, {}, 1);
    }
}

TEST_CASE("sharers: a model in parts, shared or not, has the bits of the whole") {
  for (std::uint64_t seed = 300; seed < 312; ++seed) {
    ModelCase c = random_model(seed, 4);
    c.config.layers = 3;
    const int tp = c.config.kv_heads >= 2 ? static_cast<int>(std::min<Index>(c.config.pieces, 2)) : 1;
    for (const std::vector<Index>& cuts : std::vector<std::vector<Index>>{{1}, {2}, {1, 2}, {0, 3}, {1, 1, 2}})
      check_shared(c, tp, cuts, 1);
  }
}

TEST_CASE("sharers: gradients grow, and go on from what they are") {
  for (const bool tied : {false, true}) {
    ModelCase c = random_model(400, 2);
    c.config.tied = tied;
    c.config.experts = tied ? 3 : 0;
    c.config.chosen = 2;
    const ModelPart part = whole_model(c.config);
    const PartTensors tensors = part_tensors(c.config, part, 1, c.weights());
    const RotaryAngles angles = rotary_angles(c.config);
    const Sharers alone;
    const PartWorker worker = {c.config, part, alone, angles};
    const std::vector<Matrix> once = serial_leaf(c.config, tensors, c.batch(), 1).gradients;
    PartTensors grown = zeros_like(tensors);
    for (int times = 0; times < 2; ++times) {
      PartSaved saved;
      part_forward(worker, tensors, c.batch(), Matrix(), saved);
      part_backward(worker, tensors, c.batch(), 1, Matrix(), saved, grown);
      CHECK(saved.layers.empty());
      CHECK(saved.losses.empty());
    }
    const std::vector<Matrix> twice = listed(std::move(grown));
    const std::vector<Parameter> parameters = gpt_parameters(c.config);
    for (std::size_t p = 0; p < once.size(); ++p) {
      INFO(parameters[p].name);
      double off = 0, size = 0;
      for (Index i = 0; i < once[p].size(); ++i) {
        const double expected = 2 * static_cast<double>(once[p].data()[i]);
        off += (twice[p].data()[i] - expected) * (twice[p].data()[i] - expected);
        size += expected * expected;
      }
      CHECK(size > 0);
      CHECK(std::sqrt(off) < 1e-5 * std::sqrt(size));
    }
  }
}

TEST_CASE("sharers: leaves are added as the balanced tree that tree_sum is, each computed once") {
  for (Index count = 1; count <= 17; ++count) {
    std::vector<Matrix> leaves;
    std::vector<Flat> flat;
    for (Index i = 0; i < count; ++i) {
      leaves.push_back(random_matrix({5, static_cast<std::uint64_t>(i)}, 3, 5));
      flat.push_back(leaves.back().flat());
    }
    std::vector<int> asked(static_cast<std::size_t>(count));
    const Matrix sum = sum_of_leaves(count, [&](Index i) {
      ++asked[static_cast<std::size_t>(i)];
      return leaves[static_cast<std::size_t>(i)];
    });
    CHECK(same_bits(sum, Matrix(3, 5, tree_sum(flat))));
    CHECK(std::all_of(asked.begin(), asked.end(), [](int times) { return times == 1; }));
  }
}
