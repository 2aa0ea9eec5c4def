#include "src/optim/full_step.hpp"

#include <stdexcept>
#include <utility>

#include "src/text/names.hpp"

namespace muonwalk {

void full_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients, MuonState& state,
               const Orthogonalizer& orthogonalizer) {
  const auto& [layout, place, dp, tp, observer, monitor, second_moments] = context;
  require_fitting("full_step", context,
                  {{"weights", state.weights},
                   {"momentum", state.momentum, /*whole=*/false},
                   {"gradients", gradients, /*whole=*/!settings.summed_gradients}});

  for (const auto& [b, k] : layout.all_buckets()) {
    const Bucket& bucket = layout.bucket({b, k});
    const std::vector<Index> counts = layout.dp_counts(b, k);  // what each DP rank owns of the bucket
    Range held = layout.dp_slice(b, k, place.dp);              // my DP shard, counted in the buffer
    Flat update = own_update(context, settings, gradients, state, {b, k});

    // One message gathers all the matrices of the bucket at once, and `update` is the whole bucket from here on. Who
    // owns whole matrices has them already; that no gather has rounded them to bf16 makes no difference, because
    // Newton–Schulz begins with that.
    if (gathers_buckets(layout, settings)) {
      context.begin(phases::dp_gather);
      update = dp_gather(dp, update, counts, settings.gathered());
      held = bucket.range;
    }

    orthogonalizer.work_together(context, settings, {b, k}, update, held.begin);
    for (const int index : bucket.parameters)
      matrix_step(context, settings, layout.buffers[b].parameters[index], update, held.begin, state, orthogonalizer);

    // Every rank has new weights for its own DP shard; the next forward pass needs all of them.
    context.begin(phases::gather_weights);
    all_gather_weights(dp, state.weights[b][k], counts);
  }
}

Flat own_update(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                MuonState& state, BucketNumber bucket) {
  const auto& [b, k] = bucket;

  // Every DP rank saw other data. I get the sum of all their gradients, for my DP shard alone; unless I was handed it.
  Flat update;
  if (settings.summed_gradients) {
    context.begin(phases::momentum);
    update = gradients[b][k];
  } else {
    context.begin(phases::reduce_gradients);
    update = reduce_gradients(context.dp, gradients[b][k], context.layout.dp_counts(b, k));
    context.begin(phases::momentum);
  }
  momentum(update.data(), state.momentum[b][k].data(), static_cast<Index>(update.size()), settings, update.data());
  return update;
}

void matrix_step(const StepContext& context, const MuonSettings& settings, const DistMeta& meta, const Flat& update,
                 Index begin, MuonState& state, const Orthogonalizer& orthogonalizer) {
  // I orthogonalize the matrices of which I own an element, and no others. The layout is the same on all ranks of my TP
  // group, so they own what I own and come to the same TP gathers in the same order.
  const Layout& layout = context.layout;
  const Range owned = layout.owned_range(meta, context.place.dp);
  if (owned.empty()) return;
  if (orthogonalizer.works_together_on(meta))
    return apply_owned(context, settings, meta, update.data() + (owned.begin - begin), state, orthogonalizer);

  Matrix slice;  // my TP slice
  const bool cut = !gathers_buckets(layout, settings) && owned != meta.global_range;
  if (cut) {
    context.begin(phases::dp_gather, &meta);
    slice = gather_from_owners(context.dp, update, layout, meta, settings.gathered());
  }
  // TP gather → Newton–Schulz → TP shard: see below. Afterwards it is my TP slice of the orthogonal matrix.
  const Orthogonalizer& way = cut_by_tp(meta) ? orthogonalizer : plain_orthogonalizer();
  context.begin(way.begins(meta, settings).phase, &meta);
  if (!cut) slice = view_parameter(update, begin, meta);
  slice = way.orthogonal_slice(context, settings, meta, std::move(slice));

  context.begin(phases::dp_shard, &meta);
  const Flat orthogonal = dp_shard(slice, layout, meta, context.place.dp);  // what I own of it

  apply_owned(context, settings, meta, orthogonal.data(), state, orthogonalizer);
}

void apply_owned(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                 const float* orthogonal, MuonState& state, const Orthogonalizer& orthogonalizer) {
  context.begin(phases::apply, &meta);
  const Range owned = context.layout.owned_range(meta, context.place.dp);
  const Index bucket_begin = context.layout.bucket({meta.buffer_idx, meta.bucket_idx}).range.begin;
  Flat& weights = state.weights[meta.buffer_idx][meta.bucket_idx];
  for (const auto& [range, shape] : orthogonalizer.scaled(meta, context.place.tp, owned, settings)) {
    float* mine = weights.data() + (range.begin - bucket_begin);
    const float* of_mine = orthogonal + (range.begin - owned.begin);
    apply(mine, of_mine, range.size(), shape, settings);
    if (context.monitor != nullptr)
      context.monitor->add(meta, context.place, mine, range.size(),
                           update_squares(of_mine, range.size(), shape, settings));
  }
}

Work Orthogonalizer::begins(const DistMeta& meta, const MuonSettings&) const {
  return {phases::tp_gather, meta.parameter, meta.shape, 0};
}

// The middle of the journey, as all ranks of a TP group go it together: TP gather → Newton–Schulz → TP shard. `matrix`
// is my TP slice of the update.
Matrix Orthogonalizer::orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                                        Matrix matrix) const {
  Communicator& tp = context.tp;
  matrix = tp_gather(tp, matrix, meta.tp_split_dim, settings.gathered());  // the whole matrix

  matrix = orthogonalize_gathered(context, settings, meta, std::move(matrix));

  context.begin(phases::tp_shard, &meta);
  matrix = tp_shard(matrix, meta.tp_split_dim, tp.size(), tp.rank());  // my TP slice of the orthogonal matrix
  return matrix;
}

// The whole matrix at once; or, where several projections share it, one after the other. It is whole here, so its
// pieces are the same on all ranks, wherever TP has cut.
Matrix orthogonalize_gathered(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                              Matrix matrix) {
  if (const auto fused = settings.fused.find(meta.name); fused != settings.fused.end()) {
    for (const Piece& piece : fused->second) {
      context.begin(phases::orthogonalize, &meta);
      orthogonalize_piece(matrix, piece, settings, meta.name);
    }
  } else {
    context.begin(phases::orthogonalize, &meta);
    matrix = orthogonalize(matrix, settings, meta.name);
  }

  if (settings.second_moment.used) {
    const auto number = static_cast<std::size_t>(meta.parameter);
    std::vector<Flat>* const means = context.second_moments;
    if (means == nullptr || means->size() <= number || (*means)[number].empty())
      throw std::invalid_argument("parameter " + in_quotes(meta.name) +
                                  " has no running mean of squares on this rank; a recipe that divides by one needs a "
                                  "step in which owners orthogonalize whole matrices");
    divide_by_second_moment(matrix, (*means)[number], settings.second_moment);
  }
  return matrix;
}

const Orthogonalizer& plain_orthogonalizer() {
  static const Orthogonalizer way;
  return way;
}

Buckets zero_second_moments(const Layout& layout, const Place& place, const MuonSettings& settings) {
  if (!settings.second_moment.used) return {};
  Buckets means(1);
  for (const auto& [b, k] : layout.all_buckets())
    for (const int index : layout.owned_parameters(b, k, place.dp)) {
      const DistMeta& meta = layout.buffers[b].parameters[index];
      const auto number = static_cast<std::size_t>(meta.parameter);
      if (means[0].size() <= number) means[0].resize(number + 1);
      means[0][number].resize(static_cast<std::size_t>(settings.second_moment.count(meta.full_shape)));
    }
  return means;
}

void Muon::start(const Layout& layout, const Place& place, Buckets weights) {
  state_ = {std::move(weights), zero_shards(layout, place.dp), zero_second_moments(layout, place, settings_)};
  steps_ = 0;
}

void Muon::step(const StepContext& context, const BucketsView& gradients) {
  StepContext with_means = context;
  if (settings_.second_moment.used) with_means.second_moments = &state_.second_moments[0];
  full_step(with_means, settings_, gradients, state_, orthogonalizer());
  ++steps_;
}

Optimizer::StateTensors Muon::state_tensors() {
  StateTensors own{{{{"momentum"}, &state_.momentum}}, {&steps_}};
  if (settings_.second_moment.used) own.items.push_back({{"second moment"}, &state_.second_moments});
  return own;
}

MuonSettings Muon::settings_of_reference() const {
  MuonSettings settings = settings_;
  settings.newton_schulz.threads = 1;
  settings.lr = unscaled_lr_;
  return settings;
}

}  // namespace muonwalk
