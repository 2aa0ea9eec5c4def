// (d) deals whole matrices out over dp. Here the ranks of a TP group deal them out once more among themselves, by work:
// one of them orthogonalizes a matrix, where all of them do it in (a) to (f). A bucket's slices go to the owners in one
// all-to-all, and come back orthogonal in another. So do Canzona's micro-groups, and a proposal for Megatron-LM (pull
// request 6683).
//
// A slice travels once each way, where a TP gather takes it to every rank: with T ranks 2 · (T − 1) / T of a slice's
// bytes per rank, and not T − 1. The bits are those of Muon. Matrices that TP does not cut are left to all ranks.
#include <algorithm>
#include <utility>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/parcels.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

// The matrices of a bucket that a TP group works on and TP cuts. All that it works on are dealt out together, or the
// first of every bucket would fall to one rank.
Lending lending(const Layout& layout, BucketNumber bucket, const Place& place) {
  std::vector<const DistMeta*> matrices;
  std::vector<Parameter> parameters;
  for (const auto& [b, k] : layout.all_buckets())
    for (const int index : layout.owned_parameters(b, k, place.dp))
      if (const DistMeta& meta = layout.buffers[b].parameters[index]; cut_by_tp(meta)) {
        matrices.push_back(&meta);
        parameters.push_back({meta.name, meta.full_shape});
      }
  const std::vector<int> owners = balanced_owners(parameters, layout.grid.tp());
  Lending parts;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const DistMeta& meta = *matrices[i];
    if (meta.buffer_idx != bucket.buffer || meta.bucket_idx != bucket.bucket) continue;
    if (owners[i] != place.tp) {
      parts.leaving.push_back({&meta, owners[i], meta.global_range});
      continue;
    }
    parts.worked_on.push_back(&meta);
    for (int peer = 0; peer < layout.grid.tp(); ++peer)
      if (peer != place.tp) parts.coming.push_back({&meta, peer, meta.global_range});
  }
  return parts;
}

// It keeps what Muon keeps, so either can go on from the other's checkpoint, and has its name.
class OwningOrthogonalizer : public Orthogonalizer {
 public:
  bool works_together_on(const DistMeta& meta) const override { return cut_by_tp(meta); }

  void work_together(const StepContext& context, const MuonSettings& settings, BucketNumber bucket, Flat& slices,
                     Index begin) const override {
    const Lending parts = lending(context.layout, bucket, context.place);
    if (parts.worked_on.empty() && parts.leaving.empty()) return;
    Communicator& tp = context.tp;
    lend(context, tp, settings.gathered(), parts, slices.data(), begin, [&](const DistMeta& meta, auto& parcels) {
      const Index first = meta.global_range.begin, size = meta.shape.size();
      float* const own = slices.data() + (first - begin);  // it has not travelled

      context.begin(phases::tp_gather, &meta);
      Flat all(static_cast<std::size_t>(tp.size() * size));
      for (int t = 0; t < tp.size(); ++t) parcels.unpack_to(all.data() + t * size, first, &meta, t);
      std::copy_n(own, size, all.data() + tp.rank() * size);
      Matrix whole = join_slices(all, meta.shape, meta.tp_split_dim, tp.size());
      all = Flat();

      whole = orthogonalize_gathered(context, settings, meta, std::move(whole));

      context.begin(phases::tp_shard, &meta);
      for (int t = 0; t < tp.size(); ++t) {
        const Matrix slice = tp_shard(whole, meta.tp_split_dim, tp.size(), t);
        parcels.pack_from(slice.data(), first, &meta, t);
        if (t == tp.rank()) std::copy_n(slice.data(), size, own);
      }
    });
  }

  void plan_together(Plan& plan, const Layout& layout, const MuonSettings& settings,
                     BucketNumber bucket) const override {
    const Lending parts = lending(layout, bucket, plan.place);
    if (parts.worked_on.empty() && parts.leaving.empty()) return;
    plan_lend(plan, "tp", settings.gathered(), parts, elements_of(parts.leaving), [&](const DistMeta& meta) {
      const Index full = meta.full_shape.size();
      plan.work(phases::tp_gather, meta.shape, 0, &meta);
      plan.take(full, "slices");
      plan.take(full, "matrix");
      plan.give_back(full, "slices");
      plan_orthogonalize_gathered(plan, meta, settings);
      plan.work(phases::tp_shard, meta.shape, 0, &meta);
      plan.take(meta.shape.size(), "slice");
      plan.give_back(meta.shape.size(), "slice");
      plan.give_back(full, "matrix");
    });
  }
};

}  // namespace

std::unique_ptr<Optimizer> muon_owned_over_tp(const MuonSettings& settings) {
  if (settings.second_moment.used)
    throw UsageError(
        "one rank of a TP group can't keep a running mean of squares for all of them; take a recipe without one, or "
        "a strategy in which every TP rank orthogonalizes every matrix");
  MuonSettings chosen = settings;
  chosen.gather = Gather::buckets;  // whole slices
  return std::make_unique<Muon>(chosen, std::make_unique<OwningOrthogonalizer>());
}

}  // namespace muonwalk
