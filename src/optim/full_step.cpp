#include "src/optim/full_step.hpp"

#include "src/optim/bucket_checks.hpp"

namespace muonwalk {

void full_step(const Layout& layout, const Place& place, Communicator& dp, Communicator& tp,
               const MuonSettings& settings, const Buckets& gradients, MuonState& state,
               const PhaseObserver& observer) {
  check_full_step(layout, place, dp, tp, gradients, state);
  const auto begin = [&observer](Phase phase) {
    if (observer) observer(phase);
  };

  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
      const Bucket& bucket = buffer.buckets[k];
      const Range own = layout.dp_slice(int(b), int(k), place.dp);  // my DP shard, counted in the buffer
      float* weights = state.weights[b][k].data();

      // Every DP rank saw other data. I get the sum of all their gradients, for my DP shard alone.
      begin(Phase::reduce_gradients);
      Flat update = dp.reduce_scatter(gradients[b][k]);

      begin(Phase::momentum);
      momentum(update.data(), state.momentum[b][k].data(), own.size(), settings, update.data());

      // One message gathers all the matrices of the bucket at once. From here on `update` is the whole bucket.
      begin(Phase::dp_gather);
      update = dp_gather(dp, update, settings.precision);

      for (int index : bucket.parameters) {
        // I orthogonalize the matrices of which I own an element, and no others. The layout is the same on all ranks of
        // my TP group, so they own what I own and come to the same TP gathers in the same order.
        const DistMeta& meta = buffer.parameters[index];
        const Range owned = layout.owned_range(meta, place.dp);
        if (owned.empty()) continue;

        begin(Phase::tp_gather);
        Matrix matrix = view_parameter(update, bucket.range.begin, meta);       // my TP slice
        matrix = tp_gather(tp, matrix, meta.tp_split_dim, settings.precision);  // the whole matrix

        begin(Phase::orthogonalize);
        matrix = orthogonalize(matrix, settings, meta.name);  // the whole matrix

        begin(Phase::tp_shard);
        matrix = tp_shard(matrix, meta.tp_split_dim, tp.size(), tp.rank());  // my TP slice

        begin(Phase::dp_shard);
        const Flat orthogonal = dp_shard(matrix, layout, meta, place.dp);  // what I own of it

        begin(Phase::apply);
        apply(weights + (owned.begin - bucket.range.begin), orthogonal.data(), owned.size(), meta.full_shape, settings);
      }

      // Every rank has new weights for its own DP shard; the next forward pass needs all of them.
      begin(Phase::gather_weights);
      dp.all_gather(weights + (own.begin - bucket.range.begin), own.size(), weights);
    }
  }
}

}  // namespace muonwalk
