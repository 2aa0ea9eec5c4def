#pragma once

#include <memory>
#include <vector>

#include "src/cuda/device.hpp"
#include "src/numerics/chain_kernel.hpp"

namespace muonwalk::cuda {

/// The kernels of one device (kernels.cu), loaded by the constructor. All work is handed to a stream of that device,
/// all addresses are the device's, and all results have the bits of the function of src/numerics or src/optim that each
/// of them names; only a NaN, which is one there too, has the device's own bits. A handle: copies are the same kernels.
/// All throw RunError where a launch fails.
class Kernels {
 public:
  /// Throws RunError where the device can't run what this program was compiled to.
  explicit Kernels(const Device& device);

  const Device& device() const;

  /// A chain product: compute() of chain_product.hpp.
  void product(const Stream& stream, const ChainProduct& product) const;
  /// `to`, cols × rows, becomes the transpose of `from`, rows × cols, apart from it.
  void transpose(const Stream& stream, const float* from, Index rows, Index cols, float* to) const;

  /// The doubles that sum_of_squares needs for `count` values; at least one.
  static Index sum_of_squares_room(Index count);
  /// room[0] becomes pairwise_sum_of_squares of `count` values. `room`: sum_of_squares_room(count) doubles.
  void sum_of_squares(const Stream& stream, const float* values, Index count, double* room) const;
  /// Each value by `denominator`, in double precision and rounded to float; in bf16 to bfloat16 after that.
  void divide(const Stream& stream, float* values, Index count, double denominator, Precision precision) const;
  /// out[i] = nearest_bf16(scale · values[i]); `out` may be `values`. With scale 1, round_to_bf16.
  void scale_to_bf16(const Stream& stream, float scale, const float* values, Index count, float* out) const;

  /// Elements of two bytes from floats, and back: as their namesakes of bfloat16.hpp.
  /// @{
  void to_bf16(const Stream& stream, const float* values, Index count, bfloat16* out) const;
  void from_bf16(const Stream& stream, const bfloat16* values, Index count, float* out) const;
  /// @}

  /// The journey's elementwise start, momentum() of steps.hpp: m ← mu m + g, update ← g + mu m or, not `nesterov`, m.
  void momentum(const Stream& stream, const float* gradient, float* momentum_buffer, Index count, float mu,
                bool nesterov, float* update) const;
  /// Its elementwise end, apply() of steps.hpp: w ← w keep − scale O, with keep = 1 − lr · weight_decay and scale =
  /// update_scale().
  void apply(const Stream& stream, float* weights, const float* orthogonal, Index count, float keep, float scale) const;

  /// out[i] = tree over r of parts[r][i], tree_sum() of tree_sum.hpp; in bfloat16 added in float32 and rounded once.
  /// `out` may be one of the parts. Throws std::invalid_argument for more than 448 of them.
  /// @{
  void tree_sum(const Stream& stream, const std::vector<const float*>& parts, Index count, float* out) const;
  void tree_sum(const Stream& stream, const std::vector<const bfloat16*>& parts, Index count, bfloat16* out) const;
  /// @}

 private:
  struct Module;
  std::shared_ptr<const Module> module_;
};

}  // namespace muonwalk::cuda
