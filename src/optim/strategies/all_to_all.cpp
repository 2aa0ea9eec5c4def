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

#include "src/errors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/parcels.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

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

// For one layout: it has to know where matrices will lie.
class WorkersOrthogonalizer : public DuplicatedOrthogonalizer {
 public:
  explicit WorkersOrthogonalizer(const Layout& layout) {
    const std::vector<int> workers = workers_of(layout);
    auto next = workers.begin();
    for (const Buffer& buffer : layout.buffers) {
      workers_.emplace_back(next, next + static_cast<std::ptrdiff_t>(buffer.parameters.size()));
      next += static_cast<std::ptrdiff_t>(buffer.parameters.size());
    }
  }

  bool works_together_on(const DistMeta&) const override { return true; }

  void work_together(const StepContext& context, const MuonSettings& settings, BucketNumber bucket, Flat& update,
                     Index begin) const override {
    const Travelling parts = travelling(context.layout, bucket, context.place.dp);
    lend(context, context.dp, settings.gathered(), parts.leaving, parts.coming, update.data(), begin,
         [&](auto& parcels) {
           // I work on these, together with my TP group. What I own of them myself has not travelled.
           for (const int index : parts.worked_on) {
             const DistMeta& meta = context.layout.buffers[bucket.buffer].parameters[index];
             const Index first = meta.global_range.begin;
             const Range mine = context.layout.owned_range(meta, context.place.dp);
             context.begin(begins(meta, settings).phase, &meta);
             Matrix slice(meta.shape.rows, meta.shape.cols);
             parcels.unpack_to(slice.data(), first, index);
             if (!mine.empty())
               std::copy_n(update.data() + (mine.begin - begin), mine.size(), slice.data() + (mine.begin - first));

             slice = orthogonal_slice(context, settings, meta, std::move(slice));

             context.begin(phases::dp_shard, &meta);
             parcels.pack_from(slice.data(), first, index);
             if (!mine.empty())
               std::copy_n(slice.data() + (mine.begin - first), mine.size(), update.data() + (mine.begin - begin));
           }
         });
  }

  void plan_together(Plan& plan, const Layout& layout, const MuonSettings& settings,
                     BucketNumber bucket) const override {
    const Travelling parts = travelling(layout, bucket, plan.place.dp);
    const Index leaving = elements_of(parts.leaving), coming = elements_of(parts.coming);
    const Index own = layout.dp_slice(bucket.buffer, bucket.bucket, plan.place.dp).size();
    plan_lend(plan, "dp", settings.gathered(), leaving, coming, own, [&] {
      for (const int index : parts.worked_on) {
        const DistMeta& meta = layout.buffers[bucket.buffer].parameters[index];
        const Index slice = meta.shape.size();
        plan.operations.push_back(begins(meta, settings));
        plan.take(slice, "slice");
        DuplicatedOrthogonalizer::plan(plan, meta, settings);
        plan.work(phases::dp_shard, meta.shape, 0, &meta);
        plan.give_back(slice, "slice");
      }
    });
  }

 private:
  struct Travelling {
    std::vector<int> worked_on;                   // the matrices of a bucket that a rank works on
    std::vector<TravellingPart> leaving, coming;  // what it owns of others, and what others own of these
  };
  Travelling travelling(const Layout& layout, BucketNumber number, int rank) const {
    Travelling all;
    const auto& [b, k] = number;
    for (const int index : layout.bucket(number).parameters) {
      const DistMeta& meta = layout.buffers[b].parameters[index];
      const int worker = workers_[b][index];
      if (worker == rank) all.worked_on.push_back(index);
      for (const int owner : layout.owners(meta)) {
        if (owner == worker) continue;
        const Range part = layout.owned_range(meta, owner);
        if (owner == rank) all.leaving.push_back({index, worker, part});
        if (worker == rank) all.coming.push_back({index, owner, part});
      }
    }
    return all;
  }

  std::vector<std::vector<int>> workers_;  // [buffer][parameter of the buffer]
};

class AllToAllMuon : public Muon {
 public:
  AllToAllMuon(const Layout& layout, const MuonSettings& settings) : Muon(settings), orthogonalizer_(layout) {
    settings_.gather = Gather::cut_matrices;  // no bucket
    if (settings.second_moment.used)
      throw UsageError(
          "a worker can't keep a running mean of squares for the owners of a matrix; take a recipe without one, or a "
          "strategy in which owners orthogonalize their matrices");
  }
  std::string name() const override { return "Muon, all-to-all"; }

 protected:
  const Orthogonalizer& orthogonalizer() const override { return orthogonalizer_; }

 private:
  WorkersOrthogonalizer orthogonalizer_;
};

std::unique_ptr<Optimizer> with_workers(const Layout& layout, const MuonSettings& settings, int) {
  return std::make_unique<AllToAllMuon>(layout, settings);
}

}  // namespace

Strategy all_to_all() {
  return {'e', "all-to-all", gather_everything().lay_out, with_workers, 1, true, work_of_workers};
}

}  // namespace muonwalk
