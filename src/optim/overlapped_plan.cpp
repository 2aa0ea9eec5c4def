#include "src/optim/overlapped_step.hpp"

namespace muonwalk {
namespace {

// The operations of muon_plan that are about one bucket. Those of its gather are left out.
struct BucketParts {
  std::vector<Operation> before;  // the reduce-scatter and the momentum
  std::vector<Operation> work;    // on its matrices
  std::vector<Operation> behind;  // the all-gather of weights
};

// Cuts a plan of muon_plan into its buckets; what comes before the first is what the step is handed.
std::vector<BucketParts> parts_of(const Plan& plan, std::vector<Operation>& handed) {
  std::vector<BucketParts> parts;
  std::vector<Operation> gather;  // not looked at
  std::vector<Operation>* into = &handed;
  for (const Operation& operation : plan.operations) {
    if (const Work* work = std::get_if<Work>(&operation)) {
      if (work->phase == phases::reduce_gradients) parts.emplace_back();
      BucketParts& part = parts.back();
      if (work->phase == phases::reduce_gradients || work->phase == phases::momentum)
        into = &part.before;
      else if (work->phase == phases::gather_weights)
        into = &part.behind;
      else
        into = work->phase == phases::dp_gather ? &gather : &part.work;
    }
    // Behind the all-gather of weights, the bucket is given back; here that is earlier.
    if (!parts.empty() && into == &parts.back().behind && std::holds_alternative<Memory>(operation)) continue;
    into->push_back(operation);
  }
  return parts;
}

// The calls of PostedGather on the plan's rank, in its order.
void plan_posted_gather(Plan& plan, const std::vector<Index>& counts, ElementType type, bool posts) {
  const int size = plan.grid.dp(), rank = plan.place.dp;
  const auto add = [&](CollectiveKind kind, Index in, Index out, int peer) {
    plan.operations.push_back(Call{"dp", kind, type, in, out, peer});
  };
  const auto right = [&](int step) { return (rank + step) % size; };
  const auto left = [&](int step) { return (rank + size - step) % size; };
  const auto owned = [&](int peer) { return counts[static_cast<std::size_t>(peer)]; };
  for (int step = 1; posts && step < size; ++step) add(CollectiveKind::send, owned(rank), 0, right(step));
  for (int step = 1; posts && step < size; ++step) add(CollectiveKind::recv, 0, owned(left(step)), left(step));
  for (int step = 1; !posts && step < size; ++step) add(CollectiveKind::wait, 0, 0, left(step));
  for (int step = 1; !posts && step < size; ++step) add(CollectiveKind::wait, 0, 0, right(step));
}

void append_operations(Plan& plan, const std::vector<Operation>& operations) {
  plan.operations.insert(plan.operations.end(), operations.begin(), operations.end());
}

}  // namespace

Plan overlapped_plan(const Layout& layout, const Place& place, const MuonSettings& settings, Schedule schedule) {
  require_own_gradients("overlapped_plan", settings.summed_gradients);
  Plan plan{layout.grid, place, {}};
  const std::vector<BucketParts> parts = parts_of(muon_plan(layout, place, settings), plan.operations);
  const std::vector<BucketNumber> buckets = layout.all_buckets();
  for (const BucketParts& part : parts) append_operations(plan, part.before);

  const bool gathers = gathers_buckets(layout, settings);
  const bool bf16 = settings.gathered() == Precision::bf16;
  const ElementType type = bf16 ? ElementType::bfloat16 : ElementType::float32;
  for (const BucketMove& move : moves_of(schedule, static_cast<int>(parts.size()))) {
    const BucketParts& part = parts[static_cast<std::size_t>(move.bucket)];
    const BucketNumber bucket = buckets[static_cast<std::size_t>(move.bucket)];
    const std::vector<Index> counts = layout.dp_counts(bucket.buffer, bucket.bucket);
    const Index own = counts[static_cast<std::size_t>(place.dp)], whole = layout.bucket(bucket).range.size();
    if (move.kind == BucketMove::Kind::post && gathers) {
      plan.work(phases::dp_gather, {1, whole});
      plan.take(whole, bf16 ? "2-byte elements" : "bucket", type);
      plan_posted_gather(plan, counts, type, true);
      plan.give_back(own, "update");
    }
    if (move.kind == BucketMove::Kind::wait && gathers) {
      plan.work(phases::await_gather, {1, whole});
      plan_posted_gather(plan, counts, type, false);
      if (bf16) plan.take(whole, "bucket");
      if (bf16) plan.give_back(whole, "2-byte elements", type);
    }
    if (move.kind == BucketMove::Kind::work) {
      append_operations(plan, part.work);
      gathers ? plan.give_back(whole, "bucket") : plan.give_back(own, "update");
    }
  }
  for (const BucketParts& part : parts) append_operations(plan, part.behind);
  return plan;
}

}  // namespace muonwalk
