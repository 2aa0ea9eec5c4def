#include "src/model/attention.hpp"

#include <algorithm>
#include <cmath>

#include "src/layout/slicing.hpp"
#include "src/model/exponential.hpp"
#include "src/model/lane_sum.hpp"
#include "src/numerics/products.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

// The turn, with the sign of the angles.
void turn(Matrix& x, const RotaryAngles& angles, float sign) {
  const Index tokens = angles.cosine.rows(), half = angles.cosine.cols();
  for (Index r = 0; r < x.rows(); ++r) {
    const float* cosine = angles.cosine.data() + r % tokens * half;
    const float* sine = angles.sine.data() + r % tokens * half;
    for (float* head = x.data() + r * x.cols(); head < x.data() + (r + 1) * x.cols(); head += 2 * half)
      for (Index i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i], s = sign * sine[i];
        head[i] = a * cosine[i] - b * s;
        head[half + i] = b * cosine[i] + a * s;
      }
  }
}

// Rows of queries that are multiplied with all the keys that any of them may see.
constexpr Index kQueryRows = 64;

// One head of one sequence: where it lies in the matrices that hold all of them.
struct HeadPlace {
  Index first_row;    // of the sequence, in query, key, value and mixed
  Index first_probs;  // of the head, in probabilities
  Index query_col;    // of the head, in query and mixed
  Index kv_col;       // of its keys and values
  Index slot_col;     // of its gradients of keys and values
};

template <class Work>
void for_each_head(const HeadCut& cut, Index rows, const Work& work) {
  for (Index s = 0; s < rows / cut.tokens; ++s)
    for (Index h = 0; h < cut.heads; ++h) {
      const Index slot = cut.slot_of(h);
      work(HeadPlace{s * cut.tokens, (s * cut.heads + h) * cut.tokens, h * cut.width, cut.kv_of(slot) * cut.width,
                     slot * cut.width});
    }
}

// Scores become probabilities, row by row: of `first` + i, as many as there are tokens up to itself.
void softmax_up_to_itself(float* scores, Index first, Index rows, Index tokens, float scale) {
  for (Index i = 0; i < rows; ++i, scores += tokens) {
    const Index seen = first + i + 1;
    float most = scores[0];
    for (Index j = 1; j < seen; ++j) most = std::max(most, scores[j]);
    for (Index j = 0; j < seen; ++j) scores[j] = (scores[j] - most) * scale;
    exponentials(scores, seen);
    const float share = 1.0f / lane_sum(scores, seen);
    for (Index j = 0; j < seen; ++j) scores[j] *= share;
    std::fill(scores + seen, scores + tokens, 0.0f);
  }
}

// The gradient in scores from that in probabilities, in place: p ∘ (dp − Σ p ∘ dp) · scale.
void softmax_backward(const float* probabilities, float* d, Index first, Index rows, Index tokens, float scale) {
  for (Index i = 0; i < rows; ++i, d += tokens, probabilities += tokens) {
    const Index seen = first + i + 1;
    const float mean = lane_dot(probabilities, d, seen);
    for (Index j = 0; j < seen; ++j) d[j] = probabilities[j] * (d[j] - mean) * scale;
    std::fill(d + seen, d + tokens, 0.0f);
  }
}

// The gradient of the key or value tensor. Each slot gives a leaf, the leaves of one head of it are added as a tree,
// and where a head has slots on several sharers, they exchange what they have.
void add_kv_gradient(const HeadCut& cut, const Sharers& sharers, const Matrix& d_slots, const Matrix& x,
                     Matrix& gradient) {
  const Index slots_of_head = cut.slots / cut.kv_heads;
  Matrix here(cut.kv_heads * cut.width, x.cols());
  for (Index kv = 0; kv < cut.kv_heads; ++kv) {
    const Matrix sum = sum_of_leaves(slots_of_head, [&](Index i) {
      const Index col = (kv * slots_of_head + i) * cut.width;
      return chain_product(transposed(part_of(d_slots, 0, x.rows(), col, cut.width)), x, sharers.threads());
    });
    std::copy_n(sum.data(), sum.size(), here.data() + kv * sum.size());
  }
  if (!cut.replicated) return add_onto(gradient, here);
  const Matrix all = sharers.all_gather_rows(std::move(here));
  const Index heads = gradient.rows() / cut.width, sharers_of_head = sharers.size() / heads;
  for (Index kv = 0; kv < heads; ++kv) {
    const Matrix sum = sum_of_leaves(sharers_of_head, [&](Index i) {
      const Index row = (kv * sharers_of_head + i) * cut.width;
      return row_slice(all, {row, row + cut.width});
    });
    add_onto(gradient.data() + kv * sum.size(), sum.data(), sum.size());
  }
}

}  // namespace

RotaryAngles rotary_angles(Index tokens, Index head_width, float base) {
  const Index half = head_width / 2;
  RotaryAngles angles{Matrix(tokens, half), Matrix(tokens, half)};
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < half; ++i) {
      const double frequency = std::pow(double(base), -2.0 * double(i) / double(head_width));
      angles.cosine(t, i) = static_cast<float>(std::cos(double(t) * frequency));
      angles.sine(t, i) = static_cast<float>(std::sin(double(t) * frequency));
    }
  return angles;
}

void rotate(Matrix& x, const RotaryAngles& angles) { turn(x, angles, 1); }

void rotate_back(Matrix& x, const RotaryAngles& angles) { turn(x, angles, -1); }

HeadCut head_cut(const GptConfig& config, int size, int rank) {
  HeadCut cut;
  cut.width = config.head_width();
  cut.tokens = config.tokens;
  cut.heads = config.heads / size;
  cut.pieces = config.pieces / size;
  cut.replicated = config.kv_heads < size;
  cut.kv_heads = cut.replicated ? 1 : config.kv_heads / size;
  cut.first_kv = cut.replicated ? rank * config.kv_heads / size : 0;
  cut.slots = std::max(cut.pieces, cut.kv_heads);
  return cut;
}

Matrix attention(const HeadCut& cut, const LayerTensors& tensors, const RotaryAngles& angles, const Sharers& sharers,
                 const Matrix& x, AttentionSaved& saved) {
  const Index rows = x.rows(), kv_width = cut.kv_heads * cut.width;
  const int threads = sharers.threads();
  const Index first_row = cut.first_kv * cut.width;
  saved.query = chain_product(x, transposed(tensors.query), threads);
  saved.key = chain_product(x, transposed(part_of(tensors.key, first_row, kv_width, 0, x.cols())), threads);
  saved.value = chain_product(x, transposed(part_of(tensors.value, first_row, kv_width, 0, x.cols())), threads);
  rotate(saved.query, angles);
  rotate(saved.key, angles);

  // Head by head: scores, probabilities, and the mean of the values.
  saved.probabilities = Matrix(rows * cut.heads, cut.tokens);
  saved.mixed = Matrix(rows, cut.heads * cut.width);
  const float scale = 1.0f / std::sqrt(static_cast<float>(cut.width));
  for_each_head(cut, rows, [&](const HeadPlace& at) {
    for (Index first = 0; first < cut.tokens; first += kQueryRows) {
      const Index some = std::min(kQueryRows, cut.tokens - first), seen = first + some;
      const MatrixView scores = part_of(saved.probabilities, at.first_probs + first, some, 0, seen);
      chain_product(part_of(saved.query, at.first_row + first, some, at.query_col, cut.width),
                    transposed(part_of(saved.key, at.first_row, seen, at.kv_col, cut.width)), scores);
      softmax_up_to_itself(scores.data, first, some, cut.tokens, scale);
      chain_product(scores, part_of(saved.value, at.first_row, seen, at.kv_col, cut.width),
                    part_of(saved.mixed, at.first_row + first, some, at.query_col, cut.width));
    }
  });

  const Index piece = saved.mixed.cols() / cut.pieces;
  Matrix out = sum_of_leaves(cut.pieces, [&](Index p) {
    return chain_product(part_of(saved.mixed, 0, rows, p * piece, piece),
                         transposed(part_of(tensors.output, 0, x.cols(), p * piece, piece)), threads);
  });
  sharers.leave_forward(out);
  return out;
}

Matrix attention_backward(const HeadCut& cut, const LayerTensors& tensors, const RotaryAngles& angles,
                          const Sharers& sharers, const Matrix& x, const AttentionSaved& saved, const Matrix& d_out,
                          LayerTensors& gradients) {
  const Index rows = x.rows();
  const int threads = sharers.threads();
  chain_product(transposed(d_out), saved.mixed, gradients.output, Sums::go_on, threads);
  const Matrix d_mixed = chain_product(d_out, tensors.output, threads);

  Matrix d_query(rows, saved.query.cols()), d_key(rows, cut.slots * cut.width), d_value(rows, cut.slots * cut.width);
  Matrix d_scores(cut.tokens, cut.tokens);
  const float scale = 1.0f / std::sqrt(static_cast<float>(cut.width));
  for_each_head(cut, rows, [&](const HeadPlace& at) {
    for (Index first = 0; first < cut.tokens; first += kQueryRows) {
      const Index some = std::min(kQueryRows, cut.tokens - first), seen = first + some;
      const MatrixView scores = part_of(d_scores, 0, some, 0, seen);
      const ConstMatrixView probabilities = part_of(saved.probabilities, at.first_probs + first, some, 0, seen);
      const ConstMatrixView d_some = part_of(d_mixed, at.first_row + first, some, at.query_col, cut.width);
      chain_product(d_some, transposed(part_of(saved.value, at.first_row, seen, at.kv_col, cut.width)), scores);
      softmax_backward(probabilities.data, scores.data, first, some, cut.tokens, scale);
      chain_product(scores, part_of(saved.key, at.first_row, seen, at.kv_col, cut.width),
                    part_of(d_query, at.first_row + first, some, at.query_col, cut.width));
      chain_product(transposed(scores), part_of(saved.query, at.first_row + first, some, at.query_col, cut.width),
                    part_of(d_key, at.first_row, seen, at.slot_col, cut.width), Sums::go_on);
      chain_product(transposed(probabilities), d_some, part_of(d_value, at.first_row, seen, at.slot_col, cut.width),
                    Sums::go_on);
    }
  });
  rotate_back(d_query, angles);
  rotate_back(d_key, angles);

  chain_product(transposed(d_query), x, gradients.query, Sums::go_on, threads);
  add_kv_gradient(cut, sharers, d_key, x, gradients.key);
  add_kv_gradient(cut, sharers, d_value, x, gradients.value);

  const Index piece = d_query.cols() / cut.pieces, slots = cut.slots / cut.pieces;
  Matrix d_x = sum_of_leaves(cut.pieces, [&](Index p) {
    Matrix leaf = chain_product(part_of(d_query, 0, rows, p * piece, piece),
                                part_of(tensors.query, p * piece, piece, 0, x.cols()), threads);
    for (Index slot = p * slots; slot < (p + 1) * slots; ++slot) {
      const Index row = (cut.first_kv + cut.kv_of(slot)) * cut.width;
      for (const auto& [d, tensor] : {std::pair{&d_key, &tensors.key}, {&d_value, &tensors.value}})
        chain_product(part_of(*d, 0, rows, slot * cut.width, cut.width), part_of(*tensor, row, cut.width, 0, x.cols()),
                      leaf, Sums::go_on, threads);
    }
    return leaf;
  });
  sharers.enter_backward(d_x);
  return d_x;
}

}  // namespace muonwalk
