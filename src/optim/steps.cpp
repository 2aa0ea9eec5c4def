#include "src/optim/steps.hpp"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "src/layout/slicing.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

/// Where this rank's range begins in what its group gathers.
Index own_begin(const Communicator& group, const std::vector<Index>& counts) {
  return std::accumulate(counts.begin(), counts.begin() + group.rank(), Index{0});
}

/// The shards of all ranks of a group in rank order, as both gathers need them. In bf16 this rank's shard is rounded
/// into its own place among the 2-byte elements, they travel, and all of them are widened again.
Flat gather(Communicator& group, const Flat& shard, const std::vector<Index>& counts, Precision precision) {
  Flat all(std::accumulate(counts.begin(), counts.end(), Index{0}));
  if (precision == Precision::fp32) {
    group.all_gather_v(shard.data(), counts, all.data());
    return all;
  }
  FlatOf<bfloat16> travelling(all.size());
  bfloat16* own = travelling.data() + own_begin(group, counts);
  to_bf16(shard.data(), static_cast<Index>(shard.size()), own);
  group.all_gather_v(own, counts, travelling.data());
  from_bf16(travelling.data(), static_cast<Index>(travelling.size()), all.data());
  return all;
}

/// A gather of shards of the same size.
Flat gather(Communicator& group, const Flat& shard, Precision precision) {
  return gather(group, shard, std::vector<Index>(group.size(), static_cast<Index>(shard.size())), precision);
}

}  // namespace

void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings, float* update) {
  const float mu = settings.momentum;
  for (Index i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = mu * momentum_buffer[i] + g;
    momentum_buffer[i] = m;
    update[i] = settings.nesterov ? g + mu * m : m;
  }
}

Flat reduce_gradients(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts) {
  Flat sum(counts[static_cast<std::size_t>(dp.rank())]);
  dp.reduce_scatter_v(gradients.data(), counts, sum.data());
  return sum;
}

Flat dp_gather(Communicator& dp, const Flat& shard, Precision precision) { return gather(dp, shard, precision); }

Flat dp_gather(Communicator& dp, const Flat& shard, const std::vector<Index>& counts, Precision precision) {
  return gather(dp, shard, counts, precision);
}

void all_gather_weights(Communicator& dp, Flat& weights, const std::vector<Index>& counts) {
  dp.all_gather_v(weights.data() + own_begin(dp, counts), counts, weights.data());
}

Matrix view_parameter(const Flat& bucket, Index bucket_begin, const DistMeta& meta) {
  const Range held{bucket_begin, bucket_begin + static_cast<Index>(bucket.size())};
  if (meta.global_range.begin < held.begin || meta.global_range.end > held.end)
    throw std::invalid_argument("parameter " + in_quotes(meta.name) + " lies at the elements " +
                                range_text(meta.global_range) + " of its buffer, but this rank holds " +
                                range_text(held) + "; gather the bucket first, or let one rank own all of it");
  const auto first = bucket.begin() + (meta.global_range.begin - bucket_begin);
  return Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.global_range.size()));
}

Matrix tp_gather(Communicator& tp, const Matrix& slice, SplitDim dim, Precision precision) {
  if (dim == SplitDim::none || tp.size() == 1) return slice;
  Flat slices = gather(tp, slice.flat(), precision);
  // Slices of rows lie one after the other in the whole matrix too, so the gathered buffer is the matrix. Slices of
  // columns have to be laid side by side, row by row: that takes a copy.
  if (dim == SplitDim::rows) return Matrix(slice.rows() * tp.size(), slice.cols(), std::move(slices));
  return join_slices(slices, Shape{slice.rows(), slice.cols()}, dim, tp.size());
}

Matrix orthogonalize(const Matrix& whole, const MuonSettings& settings, const std::string& parameter) {
  return newton_schulz(whole, of_newton_schulz(settings), parameter);
}

Matrix tp_shard(const Matrix& whole, SplitDim dim, int tp, int tp_rank) { return tp_slice(whole, dim, tp, tp_rank); }

Flat dp_shard(const Matrix& slice, const Layout& layout, const DistMeta& meta, int dp_rank) {
  const Range owned = layout.owned_range(meta, dp_rank);
  if (owned.empty()) return {};
  const auto first = slice.flat().begin() + (owned.begin - meta.global_range.begin);
  return Flat(first, first + owned.size());
}

void apply(float* weights, const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings) {
  const float keep = 1.0f - settings.lr * settings.weight_decay;
  const float scale = update_scale(full_shape, settings);
  for (Index i = 0; i < count; ++i) {
    const float decayed = weights[i] * keep;
    weights[i] = decayed - scale * orthogonal[i];
  }
}

}  // namespace muonwalk
