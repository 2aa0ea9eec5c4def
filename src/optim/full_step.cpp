#include "src/optim/full_step.hpp"

#include <utility>

#include "src/optim/serial_muon.hpp"

namespace muonwalk {

void full_step(const StepContext& context, const MuonSettings& settings, const Buckets& gradients, MuonState& state) {
  const auto& [layout, place, dp, tp, observer] = context;
  require_fitting(
      "full_step", context,
      {{"weights", state.weights}, {"momentum", state.momentum, /*whole=*/false}, {"gradients", gradients}});

  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
      const Bucket& bucket = buffer.buckets[k];
      const std::vector<Index> counts = layout.dp_counts(int(b), int(k));  // what each DP rank owns of the bucket
      const Range own = layout.dp_slice(int(b), int(k), place.dp);         // my DP shard, counted in the buffer
      Flat& weights = state.weights[b][k];

      // Every DP rank saw other data. I get the sum of all their gradients, for my DP shard alone.
      context.begin(phases::reduce_gradients);
      Flat update = reduce_gradients(dp, gradients[b][k], counts);

      context.begin(phases::momentum);
      momentum(update.data(), state.momentum[b][k].data(), own.size(), settings, update.data());

      // One message gathers all the matrices of the bucket at once, and `update` is the whole bucket from here on. Who
      // owns whole matrices has them already; that no gather has rounded them to bf16 makes no difference, because
      // Newton–Schulz begins with that.
      Range held = own;
      if (!layout.whole_matrices()) {
        context.begin(phases::dp_gather);
        update = dp_gather(dp, update, counts, settings.precision);
        held = bucket.range;
      }

      for (int index : bucket.parameters) {
        // I orthogonalize the matrices of which I own an element, and no others. The layout is the same on all ranks of
        // my TP group, so they own what I own and come to the same TP gathers in the same order.
        const DistMeta& meta = buffer.parameters[index];
        const Range owned = layout.owned_range(meta, place.dp);
        if (owned.empty()) continue;

        context.begin(phases::tp_gather, &meta);
        Matrix matrix = view_parameter(update, held.begin, meta);               // my TP slice
        matrix = tp_gather(tp, matrix, meta.tp_split_dim, settings.precision);  // the whole matrix

        context.begin(phases::orthogonalize, &meta);
        matrix = orthogonalize(matrix, settings, meta.name);  // the whole matrix

        context.begin(phases::tp_shard, &meta);
        matrix = tp_shard(matrix, meta.tp_split_dim, tp.size(), tp.rank());  // my TP slice

        context.begin(phases::dp_shard, &meta);
        const Flat orthogonal = dp_shard(matrix, layout, meta, place.dp);  // what I own of it

        context.begin(phases::apply, &meta);
        apply(weights.data() + (owned.begin - bucket.range.begin), orthogonal.data(), owned.size(), meta.full_shape,
              settings);
      }

      // Every rank has new weights for its own DP shard; the next forward pass needs all of them.
      context.begin(phases::gather_weights);
      all_gather_weights(dp, weights, counts);
    }
  }
}

MuonState initial_state(const Layout& layout, const std::vector<const Matrix*>& full, const Place& place) {
  return MuonState{pack_buckets(layout, full, place.tp), zero_shards(layout, place.dp)};
}

void Muon::start(const Layout& layout, const Place& place, Buckets weights) {
  state_ = {std::move(weights), zero_shards(layout, place.dp)};
}

void Muon::step(const StepContext& context, const Buckets& gradients) {
  full_step(context, settings_, gradients, state_);
}

std::unique_ptr<SerialOptimizer> Muon::reference(std::vector<NamedMatrix> parameters) const {
  MuonSettings one_thread = settings_;  // the process that compares forks, and one that forks must have no threads
  one_thread.threads = 1;
  return std::make_unique<SerialMuon>(std::move(parameters), one_thread);
}

}  // namespace muonwalk
