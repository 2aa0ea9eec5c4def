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

// The DP rank that works on each matrix, by the matrix's number.
std::vector<int> workers_of(const Layout& layout) {
  std::vector<Parameter> parameters;
  for (const DistMeta& meta : layout.parameters()) parameters.push_back({meta.name, meta.full_shape});
  const std::vector<int> dealt = balanced_owners(parameters, layout.grid.dp());
  auto next = dealt.begin();
  std::vector<int> workers;
  for (const DistMeta& meta : layout.parameters()) {
    workers.resize(std::max(workers.size(), static_cast<std::size_t>(meta.parameter) + 1));
    workers[meta.parameter] = *next++;
  }
  return workers;
}

std::vector<double> work_of_workers(const Layout& layout, int ns_steps) {
  std::vector<double> flops(static_cast<std::size_t>(layout.grid.dp()));
  const std::vector<int> workers = workers_of(layout);
  for (const DistMeta& meta : layout.parameters())
    flops[workers[meta.parameter]] += newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, ns_steps);
  return flops;
}

// For one layout: it has to know where matrices will lie.
class WorkersOrthogonalizer : public Orthogonalizer {
 public:
  explicit WorkersOrthogonalizer(const Layout& layout) : workers_(workers_of(layout)) {}

  std::string name() const override { return "Muon, all-to-all"; }
  bool works_together_on(const DistMeta&) const override { return true; }

  void work_together(const StepContext& context, const MuonSettings& settings, BucketNumber bucket, Flat& update,
                     Index begin) const override {
    // I work on these matrices, together with my TP group. What I own of them myself has not travelled.
    const auto work = [&](const DistMeta& meta, auto& parcels) {
      const Index first = meta.global_range.begin;
      const Range mine = context.layout.owned_range(meta, context.place.dp);
      context.begin(begins(meta, settings).phase, &meta);
      Matrix slice(meta.shape.rows, meta.shape.cols);
      parcels.unpack_to(slice.data(), first, &meta);
      if (!mine.empty())
        std::copy_n(update.data() + (mine.begin - begin), mine.size(), slice.data() + (mine.begin - first));

      slice = orthogonal_slice(context, settings, meta, std::move(slice));

      context.begin(phases::dp_shard, &meta);
      parcels.pack_from(slice.data(), first, &meta);
      if (!mine.empty())
        std::copy_n(slice.data() + (mine.begin - first), mine.size(), update.data() + (mine.begin - begin));
    };
    lend(context, context.dp, settings.gathered(), lending(context.layout, bucket, context.place.dp), update.data(),
         begin, work);
  }

  void plan_together(Plan& plan, const Layout& layout, const MuonSettings& settings,
                     BucketNumber bucket) const override {
    const Index own = layout.dp_slice(bucket.buffer, bucket.bucket, plan.place.dp).size();
    plan_lend(plan, "dp", settings.gathered(), lending(layout, bucket, plan.place.dp), own, [&](const DistMeta& meta) {
      const Index slice = meta.shape.size();
      plan.operations.push_back(begins(meta, settings));
      plan.take(slice, "slice");
      Orthogonalizer::plan(plan, meta, settings);
      plan.work(phases::dp_shard, meta.shape, 0, &meta);
      plan.give_back(slice, "slice");
    });
  }

 private:
  Lending lending(const Layout& layout, BucketNumber number, int rank) const {
    Lending parts;
    for (const int index : layout.bucket(number).parameters) {
      const DistMeta& meta = layout.buffers[number.buffer].parameters[index];
      const int worker = workers_[meta.parameter];
      if (worker == rank) parts.worked_on.push_back(&meta);
      for (const int owner : layout.owners(meta)) {
        if (owner == worker) continue;
        const Range part = layout.owned_range(meta, owner);
        if (owner == rank) parts.leaving.push_back({&meta, worker, part});
        if (worker == rank) parts.coming.push_back({&meta, owner, part});
      }
    }
    return parts;
  }

  std::vector<int> workers_;  // [number of the parameter]
};

std::unique_ptr<Optimizer> with_workers(const Layout& layout, const MuonSettings& settings, int) {
  if (settings.second_moment.used)
    throw UsageError(
        "a worker can't keep a running mean of squares for the owners of a matrix; take a recipe without one, or a "
        "strategy in which owners orthogonalize their matrices");
  MuonSettings chosen = settings;
  chosen.gather = Gather::cut_matrices;  // no bucket
  return std::make_unique<Muon>(chosen, std::make_unique<WorkersOrthogonalizer>(layout));
}

}  // namespace

Strategy all_to_all() {
  return {'e', "all-to-all", gather_everything().lay_out, with_workers, 1, true, work_of_workers};
}

}  // namespace muonwalk
