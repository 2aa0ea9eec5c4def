#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "src/comm/communicator.hpp"
#include "src/layout/buffer.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk {

/// What an optimizer has between two steps, without the values: the same on all ranks of a pipeline stage.
struct StateForm {
  std::string optimizer;       ///< Optimizer::name
  std::vector<HeldForm> held;  ///< the weights first, then what is kept, in the optimizer's order

  /// The form of a state.
  static StateForm of(const SavedState& saved);
  /// What an optimizer would have at a place: starts it there, with weights of zeros.
  static StateForm at(const Layout& layout, const Place& place, Optimizer& optimizer);
};

/// The values of a form's entry number `held` on one rank.
const Buckets& values_of(const SavedState& saved, std::size_t held);

/// Some elements of a parameter, as a range of its buffer.
struct ParameterPart {
  const DistMeta* meta;  ///< The parameter, as long as the layout is there.
  Range range;           ///< A range of the buffer; never empty.
};

/// All buckets of a layout that a form's entry is about, in order.
std::vector<BucketNumber> buckets_of(const Layout& layout, const HeldForm& form);

/// The range of the buffer that a rank has of a bucket, padding included: all of it, or its shard.
Range held_range(const Layout& layout, const HeldForm& form, BucketNumber number, const Place& place);

/// What a rank has of the parameters in a bucket, without padding, in the bucket's order.
std::vector<ParameterPart> parts_held(const Layout& layout, const HeldForm& form, BucketNumber number,
                                      const Place& place);

/// What of that it gives to a checkpoint, every element once: what several ranks have comes from the first.
std::vector<ParameterPart> parts_given(const Layout& layout, const HeldForm& form, BucketNumber number,
                                       const Place& place);

/// The elements of some parts.
Index part_elements(const std::vector<ParameterPart>& parts);

/// Calls `copy(here, whole, count)` for each range of a part that is contiguous in the whole tensor: element `here`,
/// counted from the part's first, and the `count` behind it are the tensor's from `whole` on.
template <class Copy>
void for_each_range(const ParameterPart& part, int tp_rank, const Copy& copy) {
  const DistMeta& meta = *part.meta;
  const Index first_row = meta.tp_split_dim == SplitDim::rows ? tp_rank * meta.shape.rows : 0;
  const Index first_col = meta.tp_split_dim == SplitDim::columns ? tp_rank * meta.shape.cols : 0;
  const Index begin = part.range.begin - meta.global_range.begin, end = part.range.end - meta.global_range.begin;
  for (Index at = begin; at < end;) {
    const Index row = at / meta.shape.cols, col = at % meta.shape.cols;
    const Index count = std::min(meta.shape.cols - col, end - at);
    copy(at - begin, (first_row + row) * meta.full_shape.cols + first_col + col, count);
    at += count;
  }
}

namespace phases {
/// Every rank says how many steps it has taken and what its optimizer keeps, so that all of them see the same.
constexpr Phase compare_states = "what ranks keep";
}  // namespace phases

/// What all ranks have found to be the same on all of them.
struct ComparedStates {
  int steps = 0;                 ///< How many steps the optimizer has taken.
  std::vector<StateForm> forms;  ///< What a rank of each pipeline stage keeps.
};

/// Every rank of `world` tells all others how many steps its optimizer has taken and what it keeps, in two all-gathers
/// of bytes. `stages` are the layouts of the pipeline stages. Throws RunError, the same sentence on every rank, where
/// that does not go together: steps or an optimizer other than those of the first rank, something that not all ranks of
/// a stage keep, a parameter of two stages of which they keep different things, two things of one name of one
/// parameter.
ComparedStates compare_states(Communicator& world, const std::vector<Layout>& stages, const SavedState& saved);

/// What that does, appended to a rank's plan.
void plan_comparison(Plan& plan, const std::vector<Layout>& stages, const std::vector<StateForm>& forms);

}  // namespace muonwalk
