#include "src/comm/predicted_traffic.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk {

Ledger predict_full_step(const Layout& layout, const Place& place, const MuonSettings& settings) {
  const int dp = layout.grid.dp();
  const int tp = layout.grid.tp();
  const ElementType gathered = settings.precision == Precision::bf16 ? ElementType::bfloat16 : ElementType::float32;

  Ledger ledger;
  const auto one_call = [&ledger](GroupKind group, CollectiveKind kind, ElementType type, const Traffic& traffic) {
    ledger.add(group_name(group), kind, type, 1, traffic);
  };

  // In the order of full_step, so that the lines of the counted ledger come in the same order.
  for (const Buffer& buffer : layout.buffers) {
    for (const Bucket& bucket : buffer.buckets) {
      const Index shard = bucket.range.size() / dp;
      one_call(GroupKind::dp, CollectiveKind::reduce_scatter, ElementType::float32,
               reduce_scatter_traffic(dp, shard, ElementType::float32));
      one_call(GroupKind::dp, CollectiveKind::all_gather, gathered, all_gather_traffic(dp, shard, gathered));
      for (int index : bucket.parameters) {
        const DistMeta& meta = buffer.parameters[index];
        const bool travels = meta.tp_split_dim != SplitDim::none && tp > 1;
        if (!travels || layout.owned_range(meta, place.dp).empty()) continue;
        one_call(GroupKind::tp, CollectiveKind::all_gather, gathered,
                 all_gather_traffic(tp, meta.shape.size(), gathered));
      }
      one_call(GroupKind::dp, CollectiveKind::all_gather, ElementType::float32,
               all_gather_traffic(dp, shard, ElementType::float32));
    }
  }
  return ledger;
}

double predict_newton_schulz_flops(const Layout& layout, const Place& place, int ns_steps) {
  double flops = 0;
  for (const Buffer& buffer : layout.buffers) {
    for (const DistMeta& meta : buffer.parameters) {
      if (layout.owned_range(meta, place.dp).empty()) continue;
      flops += newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, ns_steps);
    }
  }
  return flops;
}

}  // namespace muonwalk
