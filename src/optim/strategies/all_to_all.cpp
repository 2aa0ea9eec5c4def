// (e) Buckets are cut into equal parts as in (a), but no rank gathers them. Each matrix has one DP rank that works on
// it: the owners of its elements send it their parts of the update, all of a bucket in one all-to-all, and get their
// parts of the orthogonal matrix back in another. So do dion's megabatches, torchtitan's DistMuon, and a proposal for
// Megatron-LM (pull request 6676).
//
// So nothing is computed twice over dp, and an element travels once each way, however many ranks there are. What
// travels has two bytes per element where MuonSettings::gathered says so; also on the way back, which loses nothing,
// because there Newton–Schulz has computed in bf16. No rank sends to itself, and padding stays at home. Any policy of
// ownership will do; who owns whole matrices has no need of it.
#include <algorithm>
#include <utility>

#include "src/optim/full_step.hpp"
#include "src/optim/strategies/parcels.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

// A bucket, and who works on what of its buffer.
struct SharedBucket {
  const Layout& layout;
  int buffer_idx, bucket_idx;
  const std::vector<int>& workers;  // [parameter of the buffer]

  const DistMeta& meta(int index) const { return layout.buffers[buffer_idx].parameters[index]; }
  Range slice(int rank) const { return layout.dp_slice(buffer_idx, bucket_idx, rank); }
  Index size() const { return layout.buffers[buffer_idx].buckets[bucket_idx].range.size(); }

  std::vector<int> owned_by(int rank) const { return layout.owned_parameters(buffer_idx, bucket_idx, rank); }

  std::vector<int> worked_on_by(int rank) const {
    std::vector<int> indices;
    for (const int index : layout.buffers[buffer_idx].buckets[bucket_idx].parameters)
      if (workers[index] == rank) indices.push_back(index);
    return indices;
  }

  // What a rank owns and another one works on.
  std::vector<TravellingPart> leaving(int rank) const {
    std::vector<TravellingPart> parts;
    for (const int index : owned_by(rank))
      if (workers[index] != rank) parts.push_back({index, workers[index], layout.owned_range(meta(index), rank)});
    return parts;
  }

  // What a rank works on, worked_on_by(rank), and another one owns.
  std::vector<TravellingPart> coming(const std::vector<int>& worked_on, int rank) const {
    std::vector<TravellingPart> parts;
    for (const int index : worked_on)
      for (const int owner : layout.owners(meta(index)))
        if (owner != rank) parts.push_back({index, owner, layout.owned_range(meta(index), owner)});
    return parts;
  }
};

// Takes what this rank owns of the updates of a bucket, and leaves the same elements of the orthogonal matrices.
template <class T>
void orthogonalize_at_workers(const StepContext& context, const MuonSettings& settings,
                              const Orthogonalizer& orthogonalizer, const SharedBucket& bucket, Flat& update) {
  const int me = context.place.dp;
  const Range own = bucket.slice(me);

  context.begin(phases::to_workers);
  const std::vector<int> worked_on = bucket.worked_on_by(me);
  Parcels<T> leaving(bucket.leaving(me), context.dp.size()), coming(bucket.coming(worked_on, me), context.dp.size());
  leaving.pack_from(update.data(), own.begin);
  context.dp.all_to_all_v(leaving.data(), leaving.counts(), coming.data(), coming.counts());

  // I work on these, together with my TP group. What I own of them myself has not travelled.
  for (const int index : worked_on) {
    const DistMeta& meta = bucket.meta(index);
    const Index begin = meta.global_range.begin;
    const Range mine = intersection(meta.global_range, own);
    context.begin(orthogonalizer.begins(meta, settings).phase, &meta);
    Matrix slice(meta.shape.rows, meta.shape.cols);
    coming.unpack_to(slice.data(), begin, index);
    if (!mine.empty())
      std::copy_n(update.data() + (mine.begin - own.begin), mine.size(), slice.data() + (mine.begin - begin));

    slice = orthogonalizer.orthogonal_slice(context, settings, meta, std::move(slice));

    // Each part takes the place of the one that came, and so goes back where that came from.
    context.begin(phases::dp_shard, &meta);
    coming.pack_from(slice.data(), begin, index);
    if (!mine.empty())
      std::copy_n(slice.data() + (mine.begin - begin), mine.size(), update.data() + (mine.begin - own.begin));
  }

  context.begin(phases::to_owners);
  context.dp.all_to_all_v(coming.data(), coming.counts(), leaving.data(), leaving.counts());
  leaving.unpack_to(update.data(), own.begin);
}

// The same in the plan.
void plan_at_workers(Plan& plan, const MuonSettings& settings, const Orthogonalizer& orthogonalizer,
                     const SharedBucket& bucket) {
  const int me = plan.place.dp;
  const ElementType type = settings.gathered() == Precision::bf16 ? ElementType::bfloat16 : ElementType::float32;
  const std::vector<int> worked_on = bucket.worked_on_by(me);
  const Index leaving = elements_of(bucket.leaving(me)), coming = elements_of(bucket.coming(worked_on, me));
  plan.work(phases::to_workers, {1, bucket.slice(me).size()});
  plan.take(leaving, "parts for workers", type);
  plan.take(coming, "parts of owners", type);
  plan.call("dp", CollectiveKind::all_to_all, type, leaving, coming);

  for (const int index : worked_on) {
    const DistMeta& meta = bucket.meta(index);
    const Index slice = meta.shape.size();
    plan.operations.push_back(orthogonalizer.begins(meta, settings));
    plan.take(slice, "slice");
    orthogonalizer.plan(plan, meta, settings);
    plan.work(phases::dp_shard, meta.shape, 0, &meta);
    plan.give_back(slice, "slice");
  }

  plan.work(phases::to_owners, {1, bucket.slice(me).size()});
  plan.call("dp", CollectiveKind::all_to_all, type, coming, leaving);
  plan.give_back(coming, "parts of owners", type);
  plan.give_back(leaving, "parts for workers", type);
}

// The DP rank that works on each matrix, buffer by buffer.
std::vector<int> workers_of(const Layout& layout) {
  std::vector<Parameter> parameters;
  for (const DistMeta& meta : layout.parameters()) parameters.push_back({meta.name, meta.full_shape});
  return balanced_owners(parameters, layout.grid.dp());
}

std::vector<double> work_of_workers(const Layout& layout, int ns_steps) {
  std::vector<double> flops(static_cast<std::size_t>(layout.grid.dp()));
  const std::vector<int> workers = workers_of(layout);
  auto next = workers.begin();
  for (const DistMeta& meta : layout.parameters())
    flops[static_cast<std::size_t>(*next++)] +=
        newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, ns_steps);
  return flops;
}

// For the layout that it is started with, and planned for: it has to know where matrices will lie.
class AllToAllMuon : public Muon {
 public:
  AllToAllMuon(const Layout& layout, const MuonSettings& settings);

  std::string name() const override { return "Muon, all-to-all"; }
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override;

 private:
  std::vector<std::vector<int>> workers_;  // [buffer][parameter of the buffer]
};

AllToAllMuon::AllToAllMuon(const Layout& layout, const MuonSettings& settings) : Muon(settings) {
  const std::vector<int> workers = workers_of(layout);
  auto next = workers.begin();
  for (const Buffer& buffer : layout.buffers) {
    workers_.emplace_back(next, next + static_cast<std::ptrdiff_t>(buffer.parameters.size()));
    next += static_cast<std::ptrdiff_t>(buffer.parameters.size());
  }
}

void AllToAllMuon::step(const StepContext& context, const BucketsView& gradients) {
  const auto& [layout, place, dp, tp, observer, monitor, second_moments] = context;
  require_own_gradients("AllToAllMuon", settings_.summed_gradients);
  require_fitting(
      "AllToAllMuon", context,
      {{"weights", state_.weights}, {"momentum", state_.momentum, /*whole=*/false}, {"gradients", gradients}});
  for (const auto& [b, k] : layout.all_buckets()) {
    const SharedBucket bucket{layout, b, k, workers_[b]};
    Flat update = own_update(context, settings_, gradients, state_, {b, k});
    if (settings_.gathered() == Precision::bf16)
      orthogonalize_at_workers<bfloat16>(context, settings_, orthogonalizer(), bucket, update);
    else
      orthogonalize_at_workers<float>(context, settings_, orthogonalizer(), bucket, update);

    const Index own_begin = bucket.slice(place.dp).begin;
    for (const int index : bucket.owned_by(place.dp)) {
      const DistMeta& meta = bucket.meta(index);
      const float* orthogonal = update.data() + (layout.owned_range(meta, place.dp).begin - own_begin);
      apply_owned(context, settings_, meta, orthogonal, state_, orthogonalizer());
    }
    context.begin(phases::gather_weights);
    all_gather_weights(dp, state_.weights[b][k], layout.dp_counts(b, k));
  }
  ++steps_;
}

Plan AllToAllMuon::plan(const Layout& layout, const Place& place) const {
  require_own_gradients("the plan of AllToAllMuon", settings_.summed_gradients);
  Plan plan = plan_of_held(layout, place, {"weights", "gradients"}, {"momentum"});
  for (const auto& [b, k] : layout.all_buckets()) {
    const SharedBucket bucket{layout, b, k, workers_[b]};
    const Index own = bucket.slice(place.dp).size();
    plan_own_update(plan, layout, settings_, {b, k});
    plan_at_workers(plan, settings_, orthogonalizer(), bucket);
    for (const int index : bucket.owned_by(place.dp)) {
      const Index owned = layout.owned_range(bucket.meta(index), place.dp).size();
      plan.work(phases::apply, {1, owned}, apply_flops(settings_) * static_cast<double>(owned), &bucket.meta(index));
    }
    plan.work(phases::gather_weights, {1, bucket.size()});
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, own, bucket.size());
    plan.give_back(own, "update");
  }
  return plan;
}

std::unique_ptr<Optimizer> with_workers(const Layout& layout, const MuonSettings& settings, int) {
  return std::make_unique<AllToAllMuon>(layout, settings);
}

}  // namespace

Strategy all_to_all() {
  return {'e', "all-to-all", gather_everything().lay_out, with_workers, 1, true, work_of_workers};
}

}  // namespace muonwalk
