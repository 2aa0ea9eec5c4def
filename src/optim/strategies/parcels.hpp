#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

/// A part of a matrix that one rank of a group has and another one works on.
struct TravellingPart {
  int index;    ///< Of the matrix among the parameters of its buffer.
  int peer;     ///< The other rank: the worker, or the one that has the part.
  Range range;  ///< In the buffer of the rank that has it.
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
  void pack_from(const float* array, Index begin, int index = -1, int peer = -1) {
    each(index, peer, [&](Range range, T* part) { pack(array + (range.begin - begin), range.size(), part); });
  }
  void unpack_to(float* array, Index begin, int index = -1, int peer = -1) {
    each(index, peer, [&](Range range, T* part) { unpack(part, range.size(), array + (range.begin - begin)); });
  }
  /// @}

 private:
  template <class Do>
  void each(int index, int peer, const Do& act) {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if ((index < 0 || parts_[i].index == index) && (peer < 0 || parts_[i].peer == peer))
        act(parts_[i].range, data() + begins_[i]);
  }

  std::vector<TravellingPart> parts_;
  std::vector<Index> counts_;  // [rank]
  std::vector<Index> begins_;  // [part]
  FlatOf<T> elements_;
};

}  // namespace muonwalk
