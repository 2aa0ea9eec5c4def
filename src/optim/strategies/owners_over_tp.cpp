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

// The matrices of a bucket that a TP group works on and TP cuts, and who does: all that it works on are dealt out
// together, or the first of every bucket would fall to one rank.
struct Dealt {
  Dealt(const Layout& layout, BucketNumber bucket, const Place& place) : tp(layout.grid.tp()), me(place.tp) {
    std::vector<const DistMeta*> metas;
    std::vector<Parameter> parameters;
    for (const auto& [b, k] : layout.all_buckets())
      for (const int index : layout.owned_parameters(b, k, place.dp))
        if (const DistMeta& meta = layout.buffers[b].parameters[index]; cut_by_tp(meta)) {
          metas.push_back(&meta);
          parameters.push_back({meta.name, meta.full_shape});
        }
    const std::vector<int> dealt = balanced_owners(parameters, tp);
    for (std::size_t i = 0; i < metas.size(); ++i)
      if (metas[i]->buffer_idx == bucket.buffer && metas[i]->bucket_idx == bucket.bucket) {
        matrices.push_back(metas[i]);
        owners.push_back(dealt[i]);
      }
  }

  std::vector<int> mine() const {
    std::vector<int> indices;
    for (int i = 0; i < static_cast<int>(owners.size()); ++i)
      if (owners[i] == me) indices.push_back(i);
    return indices;
  }
  std::vector<TravellingPart> leaving() const {
    std::vector<TravellingPart> parts;
    for (int i = 0; i < static_cast<int>(owners.size()); ++i)
      if (owners[i] != me) parts.push_back({i, owners[i], matrices[i]->global_range});
    return parts;
  }
  std::vector<TravellingPart> coming() const {
    std::vector<TravellingPart> parts;
    for (const int i : mine())
      for (int peer = 0; peer < tp; ++peer)
        if (peer != me) parts.push_back({i, peer, matrices[i]->global_range});
    return parts;
  }

  int tp, me;
  std::vector<const DistMeta*> matrices;
  std::vector<int> owners;  // [matrix], a rank of the TP group
};

class OwningOrthogonalizer : public DuplicatedOrthogonalizer {
 public:
  bool works_together_on(const DistMeta& meta) const override { return cut_by_tp(meta); }

  void work_together(const StepContext& context, const MuonSettings& settings, BucketNumber bucket, Flat& slices,
                     Index begin) const override {
    const Dealt dealt(context.layout, bucket, context.place);
    if (dealt.matrices.empty()) return;
    Communicator& tp = context.tp;
    lend(context, tp, settings.gathered(), dealt.leaving(), dealt.coming(), slices.data(), begin, [&](auto& parcels) {
      for (const int index : dealt.mine()) {
        const DistMeta& meta = *dealt.matrices[index];
        const Index first = meta.global_range.begin, size = meta.shape.size();
        float* const own = slices.data() + (first - begin);  // it has not travelled

        context.begin(phases::tp_gather, &meta);
        Flat all(static_cast<std::size_t>(tp.size() * size));
        for (int t = 0; t < tp.size(); ++t) parcels.unpack_to(all.data() + t * size, first, index, t);
        std::copy_n(own, size, all.data() + tp.rank() * size);
        Matrix whole = join_slices(all, meta.shape, meta.tp_split_dim, tp.size());
        all = Flat();

        whole = orthogonalize_gathered(context, settings, meta, std::move(whole));

        context.begin(phases::tp_shard, &meta);
        for (int t = 0; t < tp.size(); ++t) {
          const Matrix slice = tp_shard(whole, meta.tp_split_dim, tp.size(), t);
          parcels.pack_from(slice.data(), first, index, t);
          if (t == tp.rank()) std::copy_n(slice.data(), size, own);
        }
      }
    });
  }

  void plan_together(Plan& plan, const Layout& layout, const MuonSettings& settings,
                     BucketNumber bucket) const override {
    const Dealt dealt(layout, bucket, plan.place);
    if (dealt.matrices.empty()) return;
    const Index leaving = elements_of(dealt.leaving());
    plan_lend(plan, "tp", settings.gathered(), leaving, elements_of(dealt.coming()), leaving, [&] {
      for (const int index : dealt.mine()) {
        const DistMeta& meta = *dealt.matrices[index];
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
      }
    });
  }
};

// It keeps what Muon keeps, so either can go on from the other's checkpoint, and has its name.
class MuonOwnedOverTp : public Muon {
 public:
  explicit MuonOwnedOverTp(const MuonSettings& settings) : Muon(settings) {
    settings_.gather = Gather::buckets;  // whole slices
    if (settings.second_moment.used)
      throw UsageError(
          "one rank of a TP group can't keep a running mean of squares for all of them; take a recipe without one, or "
          "a strategy in which every TP rank orthogonalizes every matrix");
  }

 protected:
  const Orthogonalizer& orthogonalizer() const override {
    static const OwningOrthogonalizer way;
    return way;
  }
};

}  // namespace

std::unique_ptr<Optimizer> muon_owned_over_tp(const MuonSettings& settings) {
  return std::make_unique<MuonOwnedOverTp>(settings);
}

}  // namespace muonwalk
