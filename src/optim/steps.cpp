#include "src/optim/steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "src/layout/slicing.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/numerics/fused.hpp"
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

// From `start` to `end` by `weight`, as torch.lerp rounds it: once, and from the nearer end.
float lerp(float start, float end, float weight) {
  return weight < 0.5f ? fused(weight, end - start, start) : fused(weight - 1, end - start, end);
}

// What becomes of a weight, with its element of O.
class Update {
 public:
  Update(Shape full, const MuonSettings& settings)
      : how_(settings.arithmetic),
        factors_(update_factors(full, settings)),
        last_(static_cast<int>(how_.scaling)),
        rounds_(how_.round_scaled && settings.newton_schulz.precision == Precision::bf16),
        decay_(settings.lr * settings.weight_decay * (how_.decay_scaled ? shape_scale(full, how_.scale) : 1)),
        keep_(1.0f - decay_) {}

  // What is taken from it, decay not counted.
  float size(float orthogonal) const { return times(last_, before(last_, orthogonal)); }

  float operator()(float weight, float orthogonal) const {
    const float decayed = how_.decay == Decay::scales                                    ? weight * keep_
                          : how_.decay == Decay::cautious && !(weight * orthogonal >= 0) ? weight
                          : how_.fused ? fused(-decay_, weight, weight)
                                       : weight - decay_ * weight;
    if (how_.fused) return fused(-factors_[last_], before(last_, orthogonal), decayed);
    return decayed - size(orthogonal);
  }

 private:
  float times(int factor, float update) const {
    const float product = factors_[factor] * update;
    return rounds_ && factor == 0 ? nearest_bf16(product) : product;
  }
  // With all factors before number `end`.
  float before(int end, float update) const {
    for (int factor = 0; factor < end; ++factor) update = times(factor, update);
    return update;
  }

  ElementArithmetic how_;
  std::array<float, 3> factors_;
  int last_;  // of the factors that are used
  bool rounds_;
  float decay_, keep_;
};

}  // namespace

void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings, float* update) {
  const ElementArithmetic& how = settings.arithmetic;
  const float mu = static_cast<float>(settings.momentum);
  const float of_new = how.float_momentum ? 1 - mu : static_cast<float>(1 - settings.momentum);
  for (Index i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = how.lerp ? lerp(momentum_buffer[i], g, of_new) : mu * momentum_buffer[i] + g;
    momentum_buffer[i] = m;
    update[i] = !settings.nesterov ? m : how.lerp ? lerp(g, m, mu) : how.fused ? fused(mu, m, g) : g + mu * m;
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

void divide_by_second_moment(Matrix& orthogonal, Flat& means, const SecondMoment& settings) {
  // A line is a row, or, where they have the means, a column.
  const bool by_column = settings.longer_side && orthogonal.rows() < orthogonal.cols();
  const Index length = by_column ? orthogonal.rows() : orthogonal.cols();
  const auto at = [&](Index line, Index i) -> float& { return by_column ? orthogonal(i, line) : orthogonal(line, i); };
  const auto squares_of_lines = [&] {
    std::vector<double> squares(means.size());
    for (Index line = 0; line < static_cast<Index>(means.size()); ++line)
      for (Index i = 0; i < length; ++i) squares[line] += static_cast<double>(at(line, i)) * at(line, i);
    return squares;
  };
  const std::vector<double> squares = squares_of_lines();
  const double before = std::accumulate(squares.begin(), squares.end(), 0.0);
  const double least = static_cast<double>(std::min(orthogonal.rows(), orthogonal.cols()));
  const double to_unit = settings.unit_norm && before > 0 ? least / before : 1;  // a factor of squares
  for (std::size_t line = 0; line < means.size(); ++line) {
    const float mean = static_cast<float>(to_unit * squares[line] / static_cast<double>(length));
    means[line] = lerp(means[line], mean, 1 - settings.beta2);
    const float root =
        settings.floor ? std::sqrt(std::max(means[line], settings.epsilon)) : std::sqrt(means[line]) + settings.epsilon;
    for (Index i = 0; i < length; ++i) at(static_cast<Index>(line), i) /= root;
  }
  const std::vector<double> divided = squares_of_lines();
  const double after = std::accumulate(divided.begin(), divided.end(), 0.0);
  const float back = after > 0 ? static_cast<float>(std::sqrt(to_unit * before / after)) : 1;
  for (float& value : orthogonal.flat()) value *= back;
}

Matrix tp_shard(const Matrix& whole, SplitDim dim, int tp, int tp_rank) { return tp_slice(whole, dim, tp, tp_rank); }

Flat dp_shard(const Matrix& slice, const Layout& layout, const DistMeta& meta, int dp_rank) {
  const Range owned = layout.owned_range(meta, dp_rank);
  if (owned.empty()) return {};
  const auto first = slice.flat().begin() + (owned.begin - meta.global_range.begin);
  return Flat(first, first + owned.size());
}

void apply(float* weights, const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings) {
  const Update updated(full_shape, settings);
  for (Index i = 0; i < count; ++i) weights[i] = updated(weights[i], orthogonal[i]);
}

double apply_flops(const MuonSettings& settings) {
  const int multiplications = settings.arithmetic.scaling == Scaling::once    ? 1
                              : settings.arithmetic.scaling == Scaling::twice ? 2
                                                                              : 3;
  return (settings.arithmetic.decay == Decay::scales ? 1 : 2) + multiplications + 1;
}

double update_squares(const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings) {
  const Update update(full_shape, settings);
  double squares = 0;
  for (Index i = 0; i < count; ++i) squares += std::pow(static_cast<double>(update.size(orthogonal[i])), 2);
  return squares;
}

NamedMatrix named_slice(const Parameter& parameter, const Matrix& whole, int tp, int tp_rank) {
  const bool by_rows = parameter.tp_split_dim == SplitDim::rows;
  const bool by_columns = parameter.tp_split_dim == SplitDim::columns;
  if (Shape{whole.rows(), whole.cols()} != parameter.shape)
    throw std::invalid_argument(in_quotes(parameter.name) + " is " +
                                shape_text(parameter.shape.rows, parameter.shape.cols) +
                                ", but its whole matrix was given as " + shape_text(whole.rows(), whole.cols()));
  if (tp < 1 || tp_rank < 0 || tp_rank >= tp)
    throw std::invalid_argument("TP rank " + std::to_string(tp_rank) + " of " + std::to_string(tp) + " does not exist");
  if ((by_rows && whole.rows() % tp != 0) || (by_columns && whole.cols() % tp != 0))
    throw std::invalid_argument(in_quotes(parameter.name) + " can't be cut into " + std::to_string(tp) +
                                " equal slices of " + split_name(parameter.tp_split_dim));

  Matrix slice(by_rows ? whole.rows() / tp : whole.rows(), by_columns ? whole.cols() / tp : whole.cols());
  const Index first_row = by_rows ? slice.rows() * tp_rank : 0;
  const Index first_col = by_columns ? slice.cols() * tp_rank : 0;
  for (Index i = 0; i < slice.rows(); ++i)
    for (Index j = 0; j < slice.cols(); ++j) slice(i, j) = whole(first_row + i, first_col + j);
  return {parameter.name, std::move(slice), first_row, first_col};
}

void append_of(const std::string& whose, std::vector<NamedMatrix> slices, std::vector<NamedMatrix>& all) {
  for (NamedMatrix& slice : slices) {
    slice.name = whose + ": " + slice.name;
    all.push_back(std::move(slice));
  }
}

}  // namespace muonwalk
