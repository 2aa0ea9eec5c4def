#include "src/optim/steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "src/layout/slicing.hpp"
#include "src/numerics/bf16_rounding.hpp"
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

/// Sends this rank's part of a slice to the slice's other owners, and puts theirs in place.
template <class T>
void exchange_parts(Communicator& dp, const Layout& layout, const DistMeta& meta, T* slice) {
  const Range own = layout.owned_range(meta, dp.rank());
  std::vector<Transfer> under_way;
  for (const int owner : layout.owners(meta)) {
    if (owner == dp.rank()) continue;
    const Range theirs = layout.owned_range(meta, owner);
    under_way.push_back(dp.isend(slice + (own.begin - meta.global_range.begin), own.size(), owner));
    under_way.push_back(dp.irecv(slice + (theirs.begin - meta.global_range.begin), theirs.size(), owner));
  }
  for (Transfer& each : under_way) each.wait();
}

// From `start` to `end` by `weight`, as torch.lerp rounds it: from the nearer end.
float lerp(float start, float end, float weight) {
  return weight < 0.5f ? start + weight * (end - start) : end - (end - start) * (1 - weight);
}

// What is taken from a weight for an element of O.
class Scaler {
 public:
  Scaler(Shape full, const MuonSettings& settings)
      : factors_(update_factors(full, settings)),
        rounds_(settings.arithmetic.round_scaled && settings.newton_schulz.precision == Precision::bf16) {}
  float operator()(float orthogonal) const {
    const float first = factors_[0] * orthogonal;
    return (rounds_ ? nearest_bf16(first) : first) * factors_[1] * factors_[2];
  }

 private:
  std::array<float, 3> factors_;
  bool rounds_;
};

}  // namespace

void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings, float* update) {
  const float mu = settings.momentum;
  for (Index i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = settings.arithmetic.lerp ? lerp(momentum_buffer[i], g, 1 - mu) : mu * momentum_buffer[i] + g;
    momentum_buffer[i] = m;
    update[i] = !settings.nesterov ? m : settings.arithmetic.lerp ? lerp(g, m, mu) : g + mu * m;
  }
}

double momentum_flops(const MuonSettings& settings) {
  return (settings.arithmetic.lerp ? 3.0 : 2.0) * (settings.nesterov ? 2 : 1);
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

Matrix gather_from_owners(Communicator& dp, const Flat& shard, const Layout& layout, const DistMeta& meta,
                          Precision precision) {
  const Index shard_begin = layout.dp_slice(meta.buffer_idx, meta.bucket_idx, dp.rank()).begin;
  const Range own = layout.owned_range(meta, dp.rank());
  if (own == meta.global_range) return view_parameter(shard, shard_begin, meta);
  const float* mine = shard.data() + (own.begin - shard_begin);
  const Index place = own.begin - meta.global_range.begin;  // of my part in the slice
  Matrix slice(meta.shape.rows, meta.shape.cols);
  if (precision == Precision::fp32) {
    std::copy_n(mine, own.size(), slice.data() + place);
    exchange_parts(dp, layout, meta, slice.data());
    return slice;
  }
  FlatOf<bfloat16> travelling(static_cast<std::size_t>(slice.size()));
  to_bf16(mine, own.size(), travelling.data() + place);
  exchange_parts(dp, layout, meta, travelling.data());
  from_bf16(travelling.data(), slice.size(), slice.data());
  return slice;
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
  return newton_schulz(whole, settings.newton_schulz, parameter);
}

void orthogonalize_piece(Matrix& whole, const Piece& piece, const MuonSettings& settings,
                         const std::string& parameter) {
  Matrix rows = take_rows(whole, piece);
  rows = orthogonalize(rows, settings, parameter);
  put_rows(rows, piece, whole);
}

Matrix tp_shard(const Matrix& whole, SplitDim dim, int tp, int tp_rank) { return tp_slice(whole, dim, tp, tp_rank); }

Flat dp_shard(const Matrix& slice, const Layout& layout, const DistMeta& meta, int dp_rank) {
  const Range owned = layout.owned_range(meta, dp_rank);
  if (owned.empty()) return {};
  const auto first = slice.flat().begin() + (owned.begin - meta.global_range.begin);
  return Flat(first, first + owned.size());
}

void apply(float* weights, const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings) {
  const float decay = settings.lr * settings.weight_decay, keep = 1.0f - decay;
  const Scaler scaled(full_shape, settings);
  for (Index i = 0; i < count; ++i) {
    const float decayed = settings.arithmetic.decay_subtracts ? weights[i] - decay * weights[i] : weights[i] * keep;
    weights[i] = decayed - scaled(orthogonal[i]);
  }
}

double apply_flops(const MuonSettings& settings) {
  const int multiplications = settings.arithmetic.scaling == Scaling::once    ? 1
                              : settings.arithmetic.scaling == Scaling::twice ? 2
                                                                              : 3;
  return (settings.arithmetic.decay_subtracts ? 2 : 1) + multiplications + 1;
}

double update_squares(const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings) {
  const Scaler scaled(full_shape, settings);
  double squares = 0;
  for (Index i = 0; i < count; ++i) squares += std::pow(static_cast<double>(scaled(orthogonal[i])), 2);
  return squares;
}

}  // namespace muonwalk
