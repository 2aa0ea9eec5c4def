#include "tools/scale/comparison.hpp"

#include <iterator>

#include "src/errors.hpp"
#include "src/layout/buffer.hpp"
#include "src/train/published_models.hpp"
#include "tools/scale/collective_time.hpp"
#include "tools/scale/muon_cost.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kFloat32Bytes = 4;

// What is sent for gradients and weights, bucket by bucket.
struct BucketTraffic {
  double seconds = 0, bytes = 0;
  bool extrapolated = false;
};

// The same collective for every bucket of this layout: `passes` times (ranks − 1) / ranks of it leave a rank.
void add_bucket_calls(const Layout& layout, CollectiveKind kind, int passes, const Cluster& cluster, int stride,
                      BucketTraffic& traffic) {
  const int ranks = layout.grid.dp();
  if (ranks == 1) return;
  const GroupSpread spread = group_spread(cluster, ranks, stride);
  for (const Buffer& buffer : layout.buffers)
    for (const Bucket& bucket : buffer.buckets) {
      const double bytes = kFloat32Bytes * static_cast<double>(bucket.range.size());
      const CollectiveSeconds seconds = collective_seconds(kind, bytes, cluster, spread);
      traffic.seconds += seconds.total();
      traffic.bytes += passes * bytes * (ranks - 1) / ranks;
      traffic.extrapolated = traffic.extrapolated || seconds.outside.has_value();
    }
}

// Seconds of Muon's own gathers: what it adds to a step, except for the work.
double gather_seconds(const MuonCost& cost, bool& extrapolated) {
  double seconds = 0;
  for (const Term& term : cost.terms)
    if (term.kind != &terms::newton_schulz) {
      seconds += term.amount;
      extrapolated = extrapolated || term.extrapolated();
    }
  return seconds;
}

Layout in_buckets(const std::vector<Parameter>& matrices, const Grid& grid, Index bucket) {
  return plan_layout(matrices, grid, {bucket, 1, 1, Ownership::buckets, {}});
}

}  // namespace

CommunicationComparison compare_communication(const std::vector<Parameter>& matrices, int dp, int tp, Index muon_bucket,
                                              Index adamw_bucket, const Cluster& cluster) {
  if (dp == 1 && tp == 1)
    throw UsageError("dp 1 × tp 1 is one rank, which sends nothing, so there is nothing to compare; take 2 or more");
  BucketTraffic muon, adamw;
  const Layout own = in_buckets(matrices, Grid().dp(dp).tp(tp), muon_bucket);
  add_bucket_calls(own, CollectiveKind::reduce_scatter, 1, cluster, tp, muon);
  add_bucket_calls(own, CollectiveKind::all_gather, 1, cluster, tp, muon);
  add_bucket_calls(in_buckets(matrices, Grid().dp(dp * tp), adamw_bucket), CollectiveKind::all_reduce, 2, cluster, 1,
                   adamw);
  const MuonCost gathers = muon_cost(matrices, dp, tp, tp, muon_bucket, {gather_everything()}, cluster);

  CommunicationComparison comparison;
  comparison.extrapolated = muon.extrapolated || adamw.extrapolated;
  comparison.muon_seconds = muon.seconds + gather_seconds(gathers, comparison.extrapolated);
  comparison.adamw_seconds = adamw.seconds;
  comparison.muon_bytes = muon.bytes + gathers.bytes_sent;
  comparison.adamw_bytes = adamw.bytes;
  return comparison;
}

CommunicationComparison compare_communication(const ModelShape& model, int dp, int tp, const Cluster& cluster) {
  StageMatrices all = stage_matrices(model, 1);
  std::vector<Parameter> matrices = std::move(all.dense);
  matrices.insert(matrices.end(), std::make_move_iterator(all.experts.begin()),
                  std::make_move_iterator(all.experts.end()));
  return compare_communication(matrices, dp, tp, megatron_bucket(dp), megatron_bucket(dp * tp), cluster);
}

}  // namespace muonwalk::sim
