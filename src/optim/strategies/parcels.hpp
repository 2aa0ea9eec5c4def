#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/optim/optimizer.hpp"
#include "src/optim/plan.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {

/// A part of a matrix that one rank of a group has and another one works on.
struct TravellingPart {
  const DistMeta* matrix;  ///< As long as the layout is there.
  int peer;                ///< The other rank: the worker, or the one that has the part.
  Range range;             ///< In the buffer of the rank that has it.
};

/// What a rank of a group lends of the matrices of a bucket, and what it works on.
struct Lending {
  std::vector<const DistMeta*> worked_on;       ///< In the order of the bucket.
  std::vector<TravellingPart> leaving, coming;  ///< What it has of others, and what others have of these.
};

inline Index elements_of(const std::vector<TravellingPart>& parts) {
  Index elements = 0;
  for (const TravellingPart& part : parts) elements += part.range.size();
  return elements;
}

/// How elements are put into an array that travels, and taken out of it.
/// @{
inline void pack(const float* from, Index count, float* to) { std::copy_n(from, count, to); }
inline void pack(const float* from, Index count, bfloat16* to) { to_bf16(from, count, to); }
inline void unpack(const float* from, Index count, float* to) { std::copy_n(from, count, to); }
inline void unpack(const bfloat16* from, Index count, float* to) { from_bf16(from, count, to); }
/// @}

/// Parts in one array as an all-to-all takes them: those of each peer together, in the order of the ranks.
template <class T>
class Parcels {
 public:
  /// The parts that go to the ranks of a group of this size, or come from them.
  Parcels(std::vector<TravellingPart> parts, int ranks)
      : parts_(std::move(parts)), counts_(static_cast<std::size_t>(ranks)), elements_(elements_of(parts_)) {
    for (const TravellingPart& part : parts_) counts_[part.peer] += part.range.size();
    std::vector<Index> next(counts_.size());
    for (std::size_t peer = 1; peer < next.size(); ++peer) next[peer] = next[peer - 1] + counts_[peer - 1];
    for (const TravellingPart& part : parts_) {
      begins_.push_back(next[part.peer]);
      next[part.peer] += part.range.size();
    }
  }

  T* data() { return elements_.data(); }
  const std::vector<Index>& counts() const { return counts_; }

  /// From or to an array in which element `begin` of the buffer comes first: all parts, or those of one matrix, or of
  /// one matrix and one peer.
  /// @{
  void pack_from(const float* array, Index begin, const DistMeta* matrix = nullptr, int peer = -1) {
    each(matrix, peer, [&](Range range, T* part) { pack(array + (range.begin - begin), range.size(), part); });
  }
  void unpack_to(float* array, Index begin, const DistMeta* matrix = nullptr, int peer = -1) {
    each(matrix, peer, [&](Range range, T* part) { unpack(part, range.size(), array + (range.begin - begin)); });
  }
  /// @}

 private:
  template <class Do>
  void each(const DistMeta* matrix, int peer, const Do& act) {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if ((matrix == nullptr || parts_[i].matrix == matrix) && (peer < 0 || parts_[i].peer == peer))
        act(parts_[i].range, data() + begins_[i]);
  }

  std::vector<TravellingPart> parts_;
  std::vector<Index> counts_;  // [rank]
  std::vector<Index> begins_;  // [part]
  FlatOf<T> elements_;
};

/// Sends parts of an array, in which element `begin` of the buffer comes first, to the ranks of a group that work on
/// them, and takes them back. In between, `work` is called for each matrix that this rank works on, with the Parcels
/// that have come, and puts into them what goes back where each came from. Travels in `precision`.
template <class Work>
void lend(const StepContext& context, Communicator& group, Precision precision, Lending parts, float* array,
          Index begin, const Work& work) {
  context.begin(phases::to_workers);
  const auto travel = [&](auto element) {
    Parcels<decltype(element)> away(std::move(parts.leaving), group.size()),
        here(std::move(parts.coming), group.size());
    away.pack_from(array, begin);
    group.all_to_all_v(away.data(), away.counts(), here.data(), here.counts());
    for (const DistMeta* matrix : parts.worked_on) work(*matrix, here);
    context.begin(phases::to_owners);
    group.all_to_all_v(here.data(), here.counts(), away.data(), away.counts());
    away.unpack_to(array, begin);
  };
  precision == Precision::bf16 ? travel(bfloat16()) : travel(float());
}

/// Lists what that does, with `elements` as the size of what is packed, and what `work` lists for each matrix.
template <class Work>
void plan_lend(Plan& plan, const std::string& group, Precision precision, const Lending& parts, Index elements,
               const Work& work) {
  const Index leaving = elements_of(parts.leaving), coming = elements_of(parts.coming);
  const ElementType type = precision == Precision::bf16 ? ElementType::bfloat16 : ElementType::float32;
  plan.work(phases::to_workers, {1, elements});
  plan.take(leaving, "parts for workers", type);
  plan.take(coming, "parts of owners", type);
  plan.call(group, CollectiveKind::all_to_all, type, leaving, coming);
  for (const DistMeta* matrix : parts.worked_on) work(*matrix);
  plan.work(phases::to_owners, {1, elements});
  plan.call(group, CollectiveKind::all_to_all, type, coming, leaving);
  plan.give_back(coming, "parts of owners", type);
  plan.give_back(leaving, "parts for workers", type);
}

}  // namespace muonwalk
