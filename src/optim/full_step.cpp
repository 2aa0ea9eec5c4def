#include "src/optim/full_step.hpp"

#include <utility>

#include "src/optim/serial_muon.hpp"

namespace muonwalk {

void full_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients, MuonState& state,
               const TpWay& tp_way) {
  const auto& [layout, place, dp, tp, observer, monitor] = context;
  require_fitting("full_step", context,
                  {{"weights", state.weights},
                   {"momentum", state.momentum, /*whole=*/false},
                   {"gradients", gradients, /*whole=*/!settings.summed_gradients}});

  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const Buffer& buffer = layout.buffers[b];
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k) {
      const Bucket& bucket = buffer.buckets[k];
      const std::vector<Index> counts = layout.dp_counts(int(b), int(k));  // what each DP rank owns of the bucket
      const Range own = layout.dp_slice(int(b), int(k), place.dp);         // my DP shard, counted in the buffer
      Flat& weights = state.weights[b][k];

      // Every DP rank saw other data. I get the sum of all their gradients, for my DP shard alone; unless that is what
      // I was handed.
      Flat update;
      if (settings.summed_gradients) {
        context.begin(phases::momentum);
        update = gradients[b][k];
      } else {
        context.begin(phases::reduce_gradients);
        update = reduce_gradients(dp, gradients[b][k], counts);
        context.begin(phases::momentum);
      }
      momentum(update.data(), state.momentum[b][k].data(), own.size(), settings, update.data());

      // One message gathers all the matrices of the bucket at once, and `update` is the whole bucket from here on. Who
      // owns whole matrices has them already; that no gather has rounded them to bf16 makes no difference, because
      // Newton–Schulz begins with that.
      Range held = own;
      const bool gathers = gathers_buckets(layout, settings);
      if (gathers) {
        context.begin(phases::dp_gather);
        update = dp_gather(dp, update, counts, settings.gathered());
        held = bucket.range;
      }

      for (int index : bucket.parameters) {
        // I orthogonalize the matrices of which I own an element, and no others. The layout is the same on all ranks of
        // my TP group, so they own what I own and come to the same TP gathers in the same order.
        const DistMeta& meta = buffer.parameters[index];
        const Range owned = layout.owned_range(meta, place.dp);
        if (owned.empty()) continue;

        Matrix slice;  // my TP slice
        const bool cut = !gathers && owned != meta.global_range;
        if (cut) {
          context.begin(phases::dp_gather, &meta);
          slice = gather_from_owners(dp, update, layout, meta, settings.gathered());
        }
        // TP gather → Newton–Schulz → TP shard: see below. Afterwards it is my TP slice of the orthogonal matrix.
        context.begin(tp_way.begins(meta, settings).phase, &meta);
        if (!cut) slice = view_parameter(update, held.begin, meta);
        slice = tp_way.orthogonal_slice(context, settings, meta, std::move(slice));

        context.begin(phases::dp_shard, &meta);
        const Flat orthogonal = dp_shard(slice, layout, meta, place.dp);  // what I own of it

        context.begin(phases::apply, &meta);
        for (const auto& [range, shape] : tp_way.scaled(meta, place.tp, owned, settings)) {
          float* mine = weights.data() + (range.begin - bucket.range.begin);
          const float* of_mine = orthogonal.data() + (range.begin - owned.begin);
          apply(mine, of_mine, range.size(), shape, settings);
          if (monitor != nullptr)
            monitor->add(meta, place, mine, range.size(), update_squares(of_mine, range.size(), shape, settings));
        }
      }

      // Every rank has new weights for its own DP shard; the next forward pass needs all of them.
      context.begin(phases::gather_weights);
      all_gather_weights(dp, weights, counts);
    }
  }
}

Work DuplicatedWay::begins(const DistMeta& meta, const MuonSettings&) const {
  return {phases::tp_gather, meta.parameter, meta.shape, 0};
}

// The middle of the journey, as all ranks of a TP group go it together: TP gather → Newton–Schulz → TP shard. `matrix`
// is my TP slice of the update.
Matrix DuplicatedWay::orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                                       Matrix matrix) const {
  Communicator& tp = context.tp;
  matrix = tp_gather(tp, matrix, meta.tp_split_dim, settings.gathered());  // the whole matrix

  // The whole matrix at once; or, where several projections share it, one after the other. It is whole here, so its
  // pieces are the same on all ranks, wherever TP has cut.
  if (const auto fused = settings.fused.find(meta.name); fused != settings.fused.end()) {
    for (const Piece& piece : fused->second) {
      context.begin(phases::orthogonalize, &meta);
      orthogonalize_piece(matrix, piece, settings, meta.name);
    }
  } else {
    context.begin(phases::orthogonalize, &meta);
    matrix = orthogonalize(matrix, settings, meta.name);
  }

  context.begin(phases::tp_shard, &meta);
  matrix = tp_shard(matrix, meta.tp_split_dim, tp.size(), tp.rank());  // my TP slice of the orthogonal matrix
  return matrix;
}

const TpWay& duplicated_way() {
  static const DuplicatedWay way;
  return way;
}

MuonState initial_state(const Layout& layout, const std::vector<const Matrix*>& full, const Place& place) {
  return MuonState{pack_buckets(layout, full, place.tp), zero_shards(layout, place.dp)};
}

void Muon::start(const Layout& layout, const Place& place, Buckets weights) {
  state_ = {std::move(weights), zero_shards(layout, place.dp)};
  steps_ = 0;
}

void Muon::step(const StepContext& context, const BucketsView& gradients) {
  full_step(context, settings_, gradients, state_, tp_way());
  ++steps_;
}

std::unique_ptr<SerialOptimizer> Muon::reference(std::vector<NamedMatrix> parameters) const {
  return std::make_unique<SerialMuon>(std::move(parameters), settings_of_reference());
}

MuonSettings Muon::settings_of_reference() const {
  MuonSettings settings = settings_;
  settings.threads = 1;
  settings.lr = unscaled_lr_;
  return settings;
}

}  // namespace muonwalk
