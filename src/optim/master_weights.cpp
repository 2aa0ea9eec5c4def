#include "src/optim/master_weights.hpp"

#include <algorithm>

#include "src/optim/full_step.hpp"

namespace muonwalk {

RoundedBuckets rounded(const Buckets& buckets) {
  RoundedBuckets all;
  for (const std::vector<Flat>& buffer : buckets) {
    all.emplace_back();
    for (const Flat& bucket : buffer) {
      all.back().emplace_back(bucket.size());
      to_bf16(bucket.data(), static_cast<Index>(bucket.size()), all.back().back().data());
    }
  }
  return all;
}

Buckets widened(const RoundedBuckets& buckets) {
  Buckets all;
  for (const std::vector<FlatOf<bfloat16>>& buffer : buckets) {
    all.emplace_back();
    for (const FlatOf<bfloat16>& bucket : buffer) {
      all.back().emplace_back(bucket.size());
      from_bf16(bucket.data(), static_cast<Index>(bucket.size()), all.back().back().data());
    }
  }
  return all;
}

Buckets shards_of(const Layout& layout, const BucketsView& whole, int dp_rank) {
  Buckets shards = zero_shards(layout, dp_rank);
  for (const auto& [b, k] : layout.all_buckets()) {
    const Range own = layout.dp_slice(b, k, dp_rank);
    std::copy_n(whole[b][k].begin() + (own.begin - layout.bucket({b, k}).range.begin), own.size(),
                shards[b][k].begin());
  }
  return shards;
}

Plan with_master_weights(const Plan& plan, const Layout& layout) {
  Plan mixed{plan.grid, plan.place, {}};
  bool begun = false;  // what comes before the first phase is what the rank holds between steps
  Phase phase;
  for (const Operation& operation : plan.operations) {
    if (Memory memory; !begun && std::holds_alternative<Memory>(operation)) {
      memory = std::get<Memory>(operation);
      if (memory.what == "weights") memory.type = ElementType::bfloat16;
      mixed.operations.push_back(memory);
      continue;
    }
    if (!begun) mixed.take(layout.shard_elements(plan.place.dp), "master weights");
    begun = true;
    if (const Work* work = std::get_if<Work>(&operation)) phase = work->phase;
    const Call* call = std::get_if<Call>(&operation);
    if (call != nullptr && phase == phases::gather_weights) {
      // The phase stands there already, and is about the whole bucket; what is rounded is the rank's own part.
      const Operation gather = mixed.operations.back();
      mixed.operations.back() = Work{phases::round_weights, -1, {1, call->elements_in}, 0};
      mixed.operations.push_back(gather);
      mixed.call(call->group, call->kind, ElementType::bfloat16, call->elements_in, call->elements_out);
      continue;
    }
    mixed.operations.push_back(operation);
  }
  return mixed;
}

Plan replicated(const Plan& plan, const Grid& grid, const Place& place) {
  Plan all{grid, place, {}};
  for (const Operation& operation : plan.operations) {
    const Work* work = std::get_if<Work>(&operation);
    if (work != nullptr && work->phase == phases::gather_weights) continue;
    const Call* call = std::get_if<Call>(&operation);
    if (call == nullptr || call->group != "dp")
      all.operations.push_back(operation);
    else if (call->kind == CollectiveKind::reduce_scatter)
      all.call("dp", CollectiveKind::all_reduce, call->type, call->elements_in, call->elements_in);
  }
  return all;
}

}  // namespace muonwalk
