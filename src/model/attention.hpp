#pragma once

#include "src/model/part_tensors.hpp"
#include "src/model/sharers.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Sines and cosines of rotary positions (Su et al., "RoFormer", 2021): the pair of channels i and i + head_width / 2
/// of a head is turned by position · base^(−2 i / head_width).
struct RotaryAngles {
  Matrix cosine;  ///< tokens × head_width / 2
  Matrix sine;    ///< tokens × head_width / 2
};

/// Those of positions 0 … tokens − 1.
RotaryAngles rotary_angles(Index tokens, Index head_width, float base);

/// Turns every head of every row: x is rows × (heads · head_width), and row r is at position r mod tokens.
void rotate(Matrix& x, const RotaryAngles& angles);

/// Backward: the same by the negative angles. A turn keeps lengths, so its transpose is the turn back.
void rotate_back(Matrix& x, const RotaryAngles& angles);

/// What one of the sharers has of a layer's attention: an equal range of the query heads, and the heads of keys and
/// values that those read. Where there are fewer of these than sharers, neighbours have the same one.
///
/// Gradients of keys and values are kept slot by slot: a slot is a head of them as the queries of one piece see it, so
/// that what is added to what does not depend on how many share the layer.
struct HeadCut {
  Index heads = 0;     ///< query heads here
  Index kv_heads = 0;  ///< heads of keys and values here
  Index first_kv = 0;  ///< the first of them among the rows of the key tensor that is held here
  bool replicated =
      false;         ///< fewer heads of keys and values than sharers: all have the whole tensors, and use one head
  Index pieces = 0;  ///< leaves of sums over heads here
  Index slots = 0;   ///< Slots for gradients of keys and values: a multiple of pieces and of kv_heads.
  Index width = 0;   ///< channels of a head
  Index tokens = 0;  ///< Tokens in a sequence.

  /// The slot that a query head reads, and the head of keys and values that a slot belongs to.
  /// @{
  Index slot_of(Index head) const { return head * slots / heads; }
  Index kv_of(Index slot) const { return slot * kv_heads / slots; }
  /// @}
};

/// What sharer number `rank` of `size` has.
HeadCut head_cut(const GptConfig& config, int size, int rank);

/// What a backward pass needs again of an attention.
struct AttentionSaved {
  Matrix query;          ///< rows × heads · width, turned to their positions
  Matrix key;            ///< rows × kv_heads · width, turned
  Matrix value;          ///< rows × kv_heads · width
  Matrix probabilities;  ///< heads · rows × tokens: of each sequence, head by head; 0 for what comes later
  Matrix mixed;          ///< rows × heads · width: the values, averaged by the probabilities
};

/// Causal attention with grouped-query heads (Ainslie et al., "GQA", 2023), the first half of a layer: every token
/// looks at itself and at those before it in its sequence. x is rows × width of the model, whole sequences one after
/// the other, and the same on all sharers, as is what it returns. Sums over heads have the configuration's pieces for
/// leaves.
Matrix attention(const HeadCut& cut, const LayerTensors& tensors, const RotaryAngles& angles, const Sharers& sharers,
                 const Matrix& x, AttentionSaved& saved);

/// Backward: from the gradient in what attention returned to that in x. The gradients of query, key, value and output
/// grow.
Matrix attention_backward(const HeadCut& cut, const LayerTensors& tensors, const RotaryAngles& angles,
                          const Sharers& sharers, const Matrix& x, const AttentionSaved& saved, const Matrix& d_out,
                          LayerTensors& gradients);

}  // namespace muonwalk
