#include "lessons/lesson_16_strategies/try_take_step/contract.hpp"

using namespace muonwalk;

// What is cut is gathered by those who own a part of it, and by nobody else.
void take_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
               MuonState& state) {
  const Layout& layout = context.layout;
  const Buffer& buffer = layout.buffers[0];
  for (int k = 0; k < static_cast<int>(buffer.buckets.size()); ++k) {
    const std::vector<Index> counts = layout.dp_counts(0, k);
    const Range own = layout.dp_slice(0, k, context.place.dp);
    Flat update = reduce_gradients(context.dp, gradients[0][k], counts);
    momentum(update.data(), state.momentum[0][k].data(), own.size(), settings, update.data());

    for (const int index : buffer.buckets[k].parameters) {
      const DistMeta& meta = buffer.parameters[index];
      const Range owned = layout.owned_range(meta, context.place.dp);
      if (owned.empty()) continue;
      Matrix matrix = gather_from_owners(context.dp, update, layout, meta, settings.gathered());
      matrix = tp_gather(context.tp, matrix, meta.tp_split_dim, settings.gathered());
      matrix = orthogonalize(matrix, settings, meta.name);
      matrix = tp_shard(matrix, meta.tp_split_dim, context.tp.size(), context.tp.rank());
      const Flat mine = dp_shard(matrix, layout, meta, context.place.dp);
      apply(state.weights[0][k].data() + (owned.begin - buffer.buckets[k].range.begin), mine.data(), owned.size(),
            meta.full_shape, settings);
    }
    all_gather_weights(context.dp, state.weights[0][k], counts);
  }
}
