#pragma once

#include <functional>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// The ranks that share a layer, as the layer sees them. A process that has all of it shares it with nobody, and that
/// is what this class is; a rank of a TP group asks the others (src/train/pipeline/stage.hpp).
///
/// Two operations keep a layer's halves right, each the conjugate of the other (Shoeybi et al., "Megatron-LM", 2019,
/// section 3). Where a half begins, forward does nothing, because all ranks hold the same input, and backward adds
/// what each of them found (enter). Where it ends, forward adds what each of them computed, and backward does nothing,
/// because they all hold the same gradient (leave).
class Sharers {
 public:
  virtual ~Sharers() = default;
  /// How many they are.
  virtual int size() const { return 1; }
  /// This one's number among them.
  virtual int rank() const { return 0; }
  /// OpenMP threads for products; never changes a bit.
  virtual int threads() const { return 1; }

  /// Where a half of a layer begins, backward: `gradient` becomes the sum over the ranks, a balanced tree in order.
  virtual void enter_backward(Matrix&) const {}
  /// Where it ends, forward: the same for what each of them computed of its output.
  virtual void leave_forward(Matrix&) const {}
  /// Everyone's rows, below each other in the order of the ranks.
  virtual Matrix all_gather_rows(Matrix mine) const { return mine; }

  /// Over how many ranks the experts of the layer are dealt out: those of an EP group, which have rows of their own.
  virtual int experts_over() const { return 1; }
  /// Rows go to the ranks that hold their experts, and, called again, back: the equal parts of `rows` to one rank after
  /// the other; comes back with what each of them sent, in their order.
  virtual Matrix exchange_rows(Matrix rows) const { return rows; }
};

/// The sum of `count` leaves, at least one, as a balanced tree (tree_sum.hpp). leaf(i) computes number i; not all of
/// them are held at a time.
Matrix sum_of_leaves(Index count, const std::function<Matrix(Index)>& leaf);

}  // namespace muonwalk
