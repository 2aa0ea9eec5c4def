#pragma once

#include "src/comm/communicator.hpp"
#include "src/layout/buffer.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk {

// The journey of one matrix, one function per step: DP gather → TP gather → Newton–Schulz → TP shard → DP shard.
// Lessons 04 to 08 look at one of them each; full_step.hpp calls them in order.

/// The elementwise start, on one DP shard: m ← μ m + g; update ← g + μ m (Nesterov) or m. With arithmetic.lerp,
/// m ← lerp(m, g, 1 − μ) and update ← lerp(g, m, μ) or m.
/// `gradient`, `momentum_buffer` and `update` hold `count` floats each; `update` may be `gradient`, which it then
/// replaces.
void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings, float* update);

/// The floating point operations of that for each element.
double momentum_flops(const MuonSettings& settings);

/// The sum over the DP ranks of everyone's `gradients` of a bucket, for what this rank owns of it. `counts`: the
/// elements that each DP rank owns, in rank order (Layout::dp_counts).
Flat reduce_gradients(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts);

/// Gathers one bucket over the DP group: `shard` (bucket size / dp elements) of every rank, in rank order. Returns the
/// whole bucket, padding included. In bf16 the shard is rounded and 2-byte elements travel.
Flat dp_gather(Communicator& dp, const Flat& shard, Precision precision);
/// The same where ranks own ranges of different sizes.
Flat dp_gather(Communicator& dp, const Flat& shard, const std::vector<Index>& counts, Precision precision);

/// A parameter's TP slice on a DP rank that owns a part of it: its own part is taken out of `shard`, what it owns of
/// the bucket, and the others of Layout::owners send it theirs, a message each, as it does to them. Nobody else takes
/// part, and nothing travels where the rank owns all of it. In bf16 2-byte elements travel.
///
/// Two ranks have at most one matrix of a bucket in common, the one that lies over the end of the first one's range, so
/// a message for each matrix is already one for each pair of ranks.
Matrix gather_from_owners(Communicator& dp, const Flat& shard, const Layout& layout, const DistMeta& meta,
                          Precision precision);

/// A parameter's TP slice, copied out of the gathered bucket and viewed as `meta.shape`. `bucket_begin` is the place of
/// bucket[0] in the buffer. Throws std::invalid_argument where the bucket does not hold all of it.
Matrix view_parameter(const Flat& bucket, Index bucket_begin, const DistMeta& meta);

/// Gathers one matrix over the TP group: the slices of every rank, laid side by side along `dim`. Returns the whole
/// matrix. With SplitDim::none, or one rank, it returns the slice and nothing travels. In bf16 2-byte elements travel.
Matrix tp_gather(Communicator& tp, const Matrix& slice, SplitDim dim, Precision precision);

/// Newton–Schulz on the whole matrix; the result has its shape. Throws UsageError naming `parameter` on NaN or
/// infinity.
Matrix orthogonalize(const Matrix& whole, const MuonSettings& settings, const std::string& parameter);

/// Newton–Schulz on the rows of one piece of the whole matrix, in their place: a fused matrix takes one call for each
/// of its pieces. Throws as orthogonalize does.
void orthogonalize_piece(Matrix& whole, const Piece& piece, const MuonSettings& settings, const std::string& parameter);

/// O ← O / √v, row by row, and back to the norm that it had: see SecondMoment, whose `means` are updated before. O is
/// the whole matrix, and so are its SecondMoment::count means.
void divide_by_second_moment(Matrix& orthogonal, Flat& means, const SecondMoment& settings);

/// The opposite of tp_gather, without talking: this rank's slice of the orthogonal matrix.
Matrix tp_shard(const Matrix& whole, SplitDim dim, int tp, int tp_rank);

/// The opposite of dp_gather, without talking: the elements of the slice (flat, row-major) that DP rank `dp_rank` owns;
/// empty when it owns none.
Flat dp_shard(const Matrix& slice, const Layout& layout, const DistMeta& meta, int dp_rank);

/// The elementwise end, on `count` elements of one parameter: w ← w (1 − lr · weight_decay), then
/// w ← w − lr · rms · √max(rows, cols) · O, with `full_shape`, the shape before TP of the matrix, or of the piece of a
/// fused matrix. The settings have variants of both lines.
void apply(float* weights, const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings);

/// The floating point operations of that for each element.
double apply_flops(const MuonSettings& settings);

/// The sum of squares of what `apply` takes from these weights for the update, decay not counted.
double update_squares(const float* orthogonal, Index count, Shape full_shape, const MuonSettings& settings);

/// Gives every DP rank the weights that the others have changed: `weights` is a whole bucket, and of it this rank's own
/// range goes out and all others come in. They travel as they are kept, in float32.
void all_gather_weights(Communicator& dp, Flat& weights, const std::vector<Index>& counts);

/// The TP slice of a parameter that TP rank `tp_rank` of `tp` has of the matrix `whole` (of parameter.shape), with the
/// parameter's name and its place in the whole: an equal range of rows or of columns, or all of it for SplitDim::none.
/// References of lessons compare with it, so it copies element by element and shares no code with tp_slice. Throws
/// std::invalid_argument when tp does not divide the dimension, the rank is not there, or `whole` has another shape.
NamedMatrix named_slice(const Parameter& parameter, const Matrix& whole, int tp, int tp_rank);

/// Adds `slices` to `all`, each with the name of what it is of before its own: "per bucket: 0.wq".
void append_of(const std::string& whose, std::vector<NamedMatrix> slices, std::vector<NamedMatrix>& all);

}  // namespace muonwalk
