#include "src/train/clipping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk {
namespace {

// What a rank has to count of its shard of a bucket, each range counted from the shard's begin.
std::vector<Range> counted_ranges(const Layout& layout, const Place& place, int buffer, int bucket,
                                  const std::set<std::string>& not_mine) {
  std::vector<Range> ranges;
  for (const int index : layout.owned_parameters(buffer, bucket, place.dp)) {
    const DistMeta& meta = layout.buffers[static_cast<std::size_t>(buffer)].parameters[static_cast<std::size_t>(index)];
    if (meta.tp_split_dim == SplitDim::none && place.tp != 0) continue;
    if (not_mine.count(meta.name) != 0) continue;
    ranges.push_back(layout.local_range(meta, place.dp));
  }
  return ranges;
}

void multiply_all(float* values, Index count, float factor) {
  for (Index i = 0; i < count; ++i) values[i] *= factor;
}

}  // namespace

Buckets reduced_shards(const StepContext& context, const BucketsView& gradients) {
  require_fitting("reduced_shards", context, {{"gradients", gradients}});
  Buckets shards(gradients.size());
  for (const auto& [b, k] : context.layout.all_buckets()) {
    context.begin(phases::reduce_gradients);
    shards[b].push_back(reduce_gradients(context.dp, gradients[b][k], context.layout.dp_counts(b, k)));
  }
  return shards;
}

void plan_reduced_shards(Plan& plan, const Layout& layout) {
  for (const auto& [b, k] : layout.all_buckets()) {
    const Index whole = layout.bucket({b, k}).range.size();
    const Index own = layout.dp_slice(b, k, plan.place.dp).size();
    plan.work(phases::reduce_gradients, {1, whole});
    plan.take(own, "summed gradients");
    plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, whole, own);
  }
}

ExactSum squares_of_shards(const Layout& layout, const Place& place, const BucketsView& shards,
                           const std::set<std::string>& not_mine) {
  for (const std::string& name : not_mine) layout.meta(name);  // throws where there is none
  ExactSum sum;
  for (const auto& [b, k] : layout.all_buckets())
    for (const Range& range : counted_ranges(layout, place, b, k, not_mine))
      sum.add_squares(shards[b][k].data() + range.begin, range.size());
  return sum;
}

double norm_of_all(Communicator& world, const ExactSum& mine) {
  const auto own = mine.bytes();
  FlatOf<std::byte> all(static_cast<std::size_t>(world.size()) * own.size());
  world.all_gather(own.data(), ExactSum::kBytes, all.data());
  ExactSum sum;
  for (std::size_t r = 0; r < all.size(); r += own.size()) sum.add(ExactSum::of_bytes(all.data() + r));
  return std::sqrt(sum.value());
}

float clip_factor(double norm, float max_norm) {
  if (!(max_norm > 0))
    throw UsageError(
        fmt::format("--clip {:g} makes no sense for the norm of gradients; it takes a number above 0, for "
                    "example 1",
                    max_norm));
  if (!std::isfinite(norm))
    throw UsageError(
        "the gradients hold a NaN or an infinity, so they have no norm that they could be clipped to; try smaller "
        "learning rates");
  return static_cast<float>(std::min(1.0, static_cast<double>(max_norm) / (norm + 1e-6)));
}

void scale_shards(Buckets& shards, float factor) {
  for (std::vector<Flat>& buffer : shards)
    for (Flat& shard : buffer) multiply_all(shard.data(), static_cast<Index>(shard.size()), factor);
}

double clip_shards(const StepContext& context, Communicator& world, float max_norm,
                   const std::set<std::string>& not_mine, Buckets& shards, const ExactSum& other_layouts) {
  const Grid& grid = context.layout.grid;
  if (world.size() != grid.size() || world.rank() != context.place.rank)
    throw std::invalid_argument(
        fmt::format("clip_shards was given rank {} of a group of {}, but it is rank {} of {}; hand it the group of all "
                    "ranks.",
                    world.rank(), world.size(), context.place.rank, grid.size()));
  require_fitting("clip_shards", context, {{"summed gradients", shards, /*whole=*/false}});

  context.begin(phases::gradient_norm);
  ExactSum squares = squares_of_shards(context.layout, context.place, shards, not_mine);
  squares.add(other_layouts);
  const double norm = norm_of_all(world, squares);

  context.begin(phases::clip);
  scale_shards(shards, clip_factor(norm, max_norm));
  return norm;
}

void plan_clip_shards(Plan& plan, const Layout& layout, const std::set<std::string>& not_mine, Index in_other_layouts) {
  Index counted = in_other_layouts;
  for (const auto& [b, k] : layout.all_buckets())
    for (const Range& range : counted_ranges(layout, plan.place, b, k, not_mine)) counted += range.size();
  const Index own = layout.shard_elements(plan.place.dp) + in_other_layouts;
  const Index sums = Index{ExactSum::kBytes} * plan.grid.size();
  plan.work(phases::gradient_norm, {1, counted}, 2.0 * static_cast<double>(counted));  // a square and a sum
  plan.take(sums, "sums of squares", ElementType::bytes);
  plan.call("world", CollectiveKind::all_gather, ElementType::bytes, ExactSum::kBytes, sums);
  plan.give_back(sums, "sums of squares", ElementType::bytes);
  plan.work(phases::clip, {1, own}, static_cast<double>(own));
}

double norm_of_gradients(const std::vector<Matrix>& gradients) {
  ExactSum sum;
  for (const Matrix& each : gradients) sum.add_squares(each.data(), each.size());
  return std::sqrt(sum.value());
}

double clip_gradients(std::vector<Matrix>& gradients, float max_norm) {
  const double norm = norm_of_gradients(gradients);
  const float factor = clip_factor(norm, max_norm);
  for (Matrix& each : gradients) multiply_all(each.data(), each.size(), factor);
  return norm;
}

}  // namespace muonwalk
