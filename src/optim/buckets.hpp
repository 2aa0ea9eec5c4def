#pragma once

#include <vector>

#include "src/layout/buffer.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// One flat array for each bucket of each buffer: [buffer][bucket].
using Buckets = std::vector<std::vector<Flat>>;

/// Buckets to look at, [buffer][bucket], wherever those of each buffer lie. Made of some, it is valid as long as they
/// stay where they are.
class BucketsView {
 public:
  /// Of no buffer, of all that are given, or of one.
  /// @{
  BucketsView() = default;
  BucketsView(const Buckets& buckets) {
    for (const std::vector<Flat>& buffer : buckets) buffers_.push_back(&buffer);
  }
  BucketsView(const std::vector<Flat>& buffer) : buffers_{&buffer} {}
  /// @}
  /// Those of another view behind these.
  void append(const BucketsView& more) { buffers_.insert(buffers_.end(), more.buffers_.begin(), more.buffers_.end()); }
  /// How many buffers there are.
  std::size_t size() const { return buffers_.size(); }
  /// The buckets of a buffer.
  const std::vector<Flat>& operator[](std::size_t buffer) const { return *buffers_[buffer]; }

 private:
  std::vector<const std::vector<Flat>*> buffers_;
};

/// Whole buckets of zeros, padding included.
Buckets zero_buckets(const Layout& layout);

/// The shards of a DP rank, of zeros: what it owns of each bucket.
Buckets zero_shards(const Layout& layout, int dp_rank);

/// Packs full matrices (in the order of the parameters that the layout was planned from) as TP rank `tp_rank` holds
/// them: whole buckets with zeros for padding.
Buckets pack_buckets(const Layout& layout, const std::vector<const Matrix*>& full, int tp_rank);

/// The same from one rank's TP slices, in the order of the parameters.
Buckets pack_slices(const Layout& layout, const std::vector<Matrix>& slices);

/// The opposite: a rank's TP slices, named, with their place in the full matrices. Of parameters that the layout does
/// not have but that were numbered before others that it has, there is an empty one without a name.
std::vector<NamedMatrix> unpack_buckets(const Layout& layout, const BucketsView& buckets, int tp_rank);

/// The elements of all of them.
Index element_count(const BucketsView& buckets);

}  // namespace muonwalk
