#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "src/model/attention.hpp"
#include "src/model/mlp.hpp"
#include "src/model/rms_norm.hpp"
#include "src/model/tokens.hpp"
#include "src/numerics/philox.hpp"
#include "tests/model/memory_sharers.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

Matrix numbers(std::uint64_t tensor, Index rows, Index cols, float size = 1) {
  Matrix x = random_matrix({77, tensor}, rows, cols);
  for (float& value : x.flat()) value *= size;
  return x;
}

}  // namespace

TEST_CASE("rms_norm: rows have a mean square of 1 before the gain, and ε keeps rows of zeros what they are") {
  const Index width = 37;
  Matrix x = numbers(1, 4, width);
  for (Index i = 0; i < width; ++i) {
    x(1, i) *= 1000;
    x(2, i) *= 1e-6f;
    x(3, i) = 0;
  }
  const Matrix gain = numbers(2, 1, width);
  Matrix out;
  Flat inverse;
  rms_norm(x, gain, 1e-5f, out, inverse);
  REQUIRE(inverse.size() == 4);
  for (Index t = 0; t < 4; ++t) {
    double squares = 0;
    for (Index i = 0; i < width; ++i) squares += static_cast<double>(x(t, i)) * x(t, i);
    const double expected = 1 / std::sqrt(squares / width + 1e-5);
    CHECK(inverse[static_cast<std::size_t>(t)] == doctest::Approx(expected).epsilon(1e-6));
    for (Index i = 0; i < width; ++i)
      CHECK(out(t, i) == doctest::Approx(x(t, i) * expected * gain(0, i)).epsilon(1e-6));
  }
}

TEST_CASE("rotary: turns keep lengths, a turn back undoes them, and every sequence starts at position 0") {
  const Index tokens = 6, head_width = 8, heads = 3;
  const RotaryAngles angles = rotary_angles(tokens, head_width, 10000);
  const Matrix x = numbers(6, 2 * tokens, heads * head_width);
  Matrix turned = x;
  rotate(turned, angles);
  Matrix back = turned;
  rotate_back(back, angles);
  for (Index r = 0; r < x.rows(); ++r) {
    const auto position = static_cast<double>(r % tokens);
    for (Index head = 0; head < heads; ++head)
      for (Index i = 0; i < head_width / 2; ++i) {
        const Index a = head * head_width + i, b = a + head_width / 2;
        const double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i) / head_width);
        CHECK(turned(r, a) ==
              doctest::Approx(x(r, a) * std::cos(angle) - x(r, b) * std::sin(angle)).scale(1).epsilon(1e-6));
        CHECK(turned(r, b) ==
              doctest::Approx(x(r, b) * std::cos(angle) + x(r, a) * std::sin(angle)).scale(1).epsilon(1e-6));
        CHECK(std::hypot(turned(r, a), turned(r, b)) == doctest::Approx(std::hypot(x(r, a), x(r, b))).epsilon(1e-6));
        CHECK(back(r, a) == doctest::Approx(x(r, a)).scale(1).epsilon(1e-6));
        CHECK(back(r, b) == doctest::Approx(x(r, b)).scale(1).epsilon(1e-6));
        if (r % tokens == 0) CHECK(turned(r, a) == x(r, a));
      }
  }
}

TEST_CASE("attention: no token sees a later one, or another sequence, and a sequence of one token sees itself") {
  GptConfig config;
  config.width = 16;
  config.tokens = 70;
  const HeadCut cut = head_cut(config, 1, 0);
  LayerTensors tensors;
  tensors.query = numbers(9, 16, 16);
  tensors.key = numbers(10, 8, 16);
  tensors.value = numbers(11, 8, 16);
  tensors.output = numbers(12, 16, 16);
  const RotaryAngles angles = rotary_angles(70, 4, 10000);
  const Sharers alone;
  const Matrix x = numbers(13, 140, 16);
  AttentionSaved saved, other_saved;
  const Matrix out = attention(cut, tensors, angles, alone, x, saved);
  for (Index row = 0; row < saved.probabilities.rows(); ++row) {
    double sum = 0;
    for (Index j = 0; j < 70; ++j) {
      sum += saved.probabilities(row, j);
      if (j > row % 70) CHECK(saved.probabilities(row, j) == 0.0f);
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
  }
  CHECK(saved.probabilities(0, 0) == 1.0f);
  for (const Index changed : {0, 40, 63, 64, 69}) {
    Matrix other = x;
    for (Index c = 0; c < 16; ++c) other(changed, c) += 1;
    const Matrix other_out = attention(cut, tensors, angles, alone, other, other_saved);
    for (Index t = 0; t < 140; ++t) {
      const bool same = std::memcmp(out.data() + t * 16, other_out.data() + t * 16, 16 * sizeof(float)) == 0;
      if (t < changed || t >= 70) CHECK(same);
      if (t == changed) CHECK_FALSE(same);
    }
  }
}

TEST_CASE("attention: scores that are far too large for an exponential give probabilities all the same") {
  GptConfig config;
  config.width = 16;
  config.tokens = 5;
  LayerTensors tensors;
  tensors.query = numbers(9, 16, 16, 1000);
  tensors.key = numbers(10, 8, 16, 1000);
  tensors.value = numbers(11, 8, 16);
  tensors.output = numbers(12, 16, 16);
  AttentionSaved saved;
  attention(head_cut(config, 1, 0), tensors, rotary_angles(5, 4, 10000), Sharers(), numbers(13, 5, 16), saved);
  for (Index row = 0; row < saved.probabilities.rows(); ++row) {
    double sum = 0;
    for (Index j = 0; j < 5; ++j) sum += saved.probabilities(row, j);
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("attention: the cut of heads covers all of them, and neighbours share what there is less of") {
  GptConfig config;
  config.heads = 16;
  config.width = 64;
  config.pieces = 16;
  for (const Index kv_heads : {1, 2, 4, 8, 16}) {
    config.kv_heads = kv_heads;
    for (const int size : {1, 2, 4, 8, 16}) {
      for (int rank = 0; rank < size; ++rank) {
        const HeadCut cut = head_cut(config, size, rank);
        CHECK(cut.heads == 16 / size);
        CHECK(cut.pieces == 16 / size);
        CHECK(cut.replicated == (kv_heads < size));
        CHECK(cut.kv_heads == std::max<Index>(1, kv_heads / size));
        for (Index h = 0; h < cut.heads; ++h) {
          // Which of all heads of keys and values a query reads, as Ainslie et al. group them.
          const Index first_held = cut.replicated ? cut.first_kv : rank * kv_heads / size;
          CHECK(first_held + cut.kv_of(cut.slot_of(h)) == (rank * cut.heads + h) * kv_heads / 16);
        }
      }
    }
  }
}

TEST_CASE("mlp: SwiGLU of gates that are very large either way, or no numbers") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  MlpTensors tensors{Matrix(5, 1, {1000, -1000, 0, nan, 2}), Matrix(5, 1, {3, 3, 3, 3, 3}), Matrix(1, 5)};
  MlpSaved saved;
  swiglu(tensors, Sharers(), Matrix(1, 1, {1}), saved);
  CHECK(saved.hidden(0, 0) == 3000.0f);
  CHECK(saved.hidden(0, 1) == 0.0f);
  CHECK(saved.hidden(0, 2) == 0.0f);
  CHECK(std::isnan(saved.hidden(0, 3)));
  CHECK(saved.hidden(0, 4) == doctest::Approx(6 / (1 + std::exp(-2.0))));
  Matrix d(1, 5, {1, 1, 1, 1, 1});
  const Matrix d_up = swiglu_backward(saved, d);
  CHECK(d(0, 0) == 3.0f);
  CHECK(d(0, 1) == 0.0f);
  CHECK(d(0, 2) == 1.5f);
  CHECK(d_up(0, 0) == 1000.0f);
  CHECK(d_up(0, 1) == 0.0f);
}

TEST_CASE("tokens: rows of the embedding keep their bits, those of −0 too, however many share it") {
  GptConfig config;
  config.vocabulary = 8;
  config.width = 4;
  Matrix embedding = numbers(30, 8, 4);
  for (Index c = 0; c < 4; ++c) embedding(3, c) = -0.0f;
  const std::vector<std::int32_t> tokens = {3, 0, 7, 3, 5};
  const Matrix d = numbers(31, 5, 4);
  for (const int size : {1, 2, 4}) {
    std::vector<Matrix> rows(static_cast<std::size_t>(size)), gradients(rows.size());
    share(size, 1, [&](const Sharers& sharers) {
      const auto rank = static_cast<std::size_t>(sharers.rank());
      Matrix own(8 / size, 4);
      std::copy_n(embedding.data() + sharers.rank() * own.size(), own.size(), own.data());
      rows[rank] = embed(config, own, sharers, tokens);
      gradients[rank] = Matrix(8 / size, 4);
      embed_backward(sharers, tokens, d, gradients[rank]);
    });
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      for (Index t = 0; t < 5; ++t)
        CHECK(std::memcmp(rows[rank].data() + 4 * t, embedding.data() + 4 * tokens[static_cast<std::size_t>(t)],
                          4 * sizeof(float)) == 0);
      for (Index row = 0; row < 8 / size; ++row)
        for (Index c = 0; c < 4; ++c) {
          float expected = 0;
          for (Index t = 0; t < 5; ++t)
            if (tokens[static_cast<std::size_t>(t)] == static_cast<Index>(rank) * 8 / size + row) expected += d(t, c);
          CHECK(gradients[rank](row, c) == expected);
        }
    }
  }
}

TEST_CASE("tokens: the cross-entropy of logits of any size") {
  GptConfig config;
  config.vocabulary = 8;
  config.width = 1;
  config.pieces = 4;
  const Matrix output(8, 1, {0, 1, 2, 3, -1, -2, -3, 0.5f});
  for (const float size : {0.0f, 1.0f, 30.0f, 1e4f, -1e4f, 1e30f}) {
    LossSaved saved;
    const std::vector<std::int32_t> targets = {3, 6, 0};
    const Flat losses = cross_entropy(config, output, Sharers(), Matrix(3, 1, {size, size, size}), targets, saved);
    for (std::size_t t = 0; t < 3; ++t) {
      double sum = 0, most = size > 0 ? 3.0 * size : -3.0 * size;
      for (const float weight : output.flat()) sum += std::exp(static_cast<double>(weight) * size - most);
      const double expected =
          most + std::log(sum) - static_cast<double>(output(targets[t], 0)) * static_cast<double>(size);
      CHECK(losses[t] == doctest::Approx(expected).epsilon(1e-6).scale(1));
    }
    Matrix gradient(8, 1);
    cross_entropy_backward(config, output, Sharers(), Matrix(3, 1, {1, 1, 1}), targets, 0.5f, saved, gradient);
    double sum = 0;
    for (const float value : gradient.flat()) sum += value;
    CHECK(std::abs(sum) < 1e-6);  // probabilities add up to the 1 that is taken from the target's
  }
}
