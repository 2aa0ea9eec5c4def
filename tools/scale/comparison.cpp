#include "tools/scale/comparison.hpp"

#include <iterator>
#include <optional>
#include <variant>

#include "src/errors.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/train/published_models.hpp"
#include "tools/scale/muon_cost.hpp"

namespace muonwalk::sim {
namespace {

// What a rank sends by its plan.
struct Sent {
  double seconds = 0, bytes = 0;
  bool extrapolated = false;
};

Sent sent_by(const Plan& plan, int dp_stride, const Cluster& cluster) {
  Sent sent;
  for (const Operation& operation : plan.operations) {
    const Call* call = std::get_if<Call>(&operation);
    const auto cost = call == nullptr ? std::nullopt : call_cost(*call, plan.grid, dp_stride, cluster);
    if (!cost) continue;
    sent.seconds += cost->seconds.total();
    sent.bytes += cost->bytes_sent;
    sent.extrapolated = sent.extrapolated || cost->seconds.outside;
  }
  return sent;
}

}  // namespace

CommunicationComparison compare_communication(const std::vector<Parameter>& matrices, int dp, int tp, Index muon_bucket,
                                              Index adamw_bucket, const Cluster& cluster) {
  if (dp == 1 && tp == 1)
    throw UsageError("dp 1 × tp 1 is one rank, which sends nothing, so there is nothing to compare; take 2 or more");
  const MuonSetup setup{gather_everything()};
  const Layout own = setup.strategy.lay_out(matrices, Grid().dp(dp).tp(tp), muon_bucket),
               alike = setup.strategy.lay_out(matrices, Grid().dp(dp * tp), adamw_bucket);
  const Sent muon = sent_by(busiest_plan(setup, own), tp, cluster),
             adamw = sent_by(AdamW(AdamWSettings()).plan(alike, Place()), 1, cluster);
  return {muon.seconds, adamw.seconds, muon.bytes, adamw.bytes, muon.extrapolated || adamw.extrapolated};
}

CommunicationComparison compare_communication(const ModelShape& model, int dp, int tp, const Cluster& cluster) {
  StageMatrices all = stage_matrices(model, 1);
  std::vector<Parameter> matrices = std::move(all.dense);
  matrices.insert(matrices.end(), std::make_move_iterator(all.experts.begin()),
                  std::make_move_iterator(all.experts.end()));
  return compare_communication(matrices, dp, tp, megatron_bucket(dp), megatron_bucket(dp * tp), cluster);
}

}  // namespace muonwalk::sim
