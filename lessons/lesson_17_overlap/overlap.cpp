#include "lessons/lesson_17_overlap/overlap.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/numerics/bfloat16.hpp"

namespace muonwalk {
namespace {

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

}  // namespace

PostedGather::PostedGather(Communicator& dp, std::vector<Index> counts, Precision precision) : dp_(&dp), begins_(1, 0) {
  for (const Index count : counts) begins_.push_back(begins_.back() + count);
  if (precision == Precision::bf16) bucket_ = FlatOf<bfloat16>();
  std::visit([&](auto& bucket) { bucket.resize(static_cast<std::size_t>(begins_.back())); }, bucket_);
}

void PostedGather::fill(const Flat& shard) {
  const auto own = static_cast<std::size_t>(dp_->rank());
  const Index begin = begins_[own];
  if (static_cast<Index>(shard.size()) != begins_[own + 1] - begin)
    throw std::invalid_argument("a gather was to be filled with a shard of " + std::to_string(shard.size()) +
                                " elements, but this rank owns " + std::to_string(begins_[own + 1] - begin) +
                                " of the bucket; give it what dp_slice says.");
  if (Flat* whole = std::get_if<Flat>(&bucket_))
    std::copy(shard.begin(), shard.end(), whole->begin() + begin);
  else
    to_bf16(shard.data(), static_cast<Index>(shard.size()), std::get<FlatOf<bfloat16>>(bucket_).data() + begin);
}

// Each rank begins with its right-hand neighbour, so that not everybody talks to rank 0 first.
void PostedGather::send() {
  const int own = dp_->rank();
  const Index begin = begins_[std::size_t(own)], end = begins_[std::size_t(own) + 1];
  for (int step = 1; step < dp_->size(); ++step)
    sending_.push_back(std::visit(
        [&](auto& bucket) { return dp_->isend(bucket.data() + begin, end - begin, (own + step) % dp_->size()); },
        bucket_));
}

void PostedGather::receive() {
  for (int step = 1; step < dp_->size(); ++step) {
    const int peer = (dp_->rank() + dp_->size() - step) % dp_->size();
    const Index begin = begins_[std::size_t(peer)], end = begins_[std::size_t(peer) + 1];
    receiving_.push_back(
        std::visit([&](auto& bucket) { return dp_->irecv(bucket.data() + begin, end - begin, peer); }, bucket_));
  }
}

Flat PostedGather::wait() {
  for (Transfer& each : receiving_) each.wait();
  for (Transfer& each : sending_) each.wait();
  receiving_.clear();
  sending_.clear();
  if (Flat* whole = std::get_if<Flat>(&bucket_)) return std::move(*whole);
  const FlatOf<bfloat16> rounded = std::get<FlatOf<bfloat16>>(std::move(bucket_));
  Flat bucket(rounded.size());
  from_bf16(rounded.data(), static_cast<Index>(rounded.size()), bucket.data());
  return bucket;
}

PostedGather start_dp_gather(Communicator& dp, const Flat& shard, const std::vector<Index>& counts,
                             Precision precision) {
  PostedGather gather(dp, counts, precision);
  gather.fill(shard);
  gather.send();
  gather.receive();
  return gather;
}

Plan overlapped_plan(const Layout& layout, const Place& place, const MuonSettings& settings, Schedule schedule) {
  require_own_gradients("overlapped_plan", settings.summed_gradients);
  Plan plan = plan_of_muon_held(layout, place, settings);
  const std::vector<BucketNumber> buckets = layout.all_buckets();
  for (const BucketNumber bucket : buckets) plan_own_update(plan, layout, settings, bucket);

  const bool gathers = gathers_buckets(layout, settings);
  const bool bf16 = settings.gathered() == Precision::bf16;
  const ElementType type = bf16 ? ElementType::bfloat16 : ElementType::float32;
  const auto whole = [&](std::size_t k) { return layout.bucket(buckets[k]).range.size(); };
  const auto counts = [&](std::size_t k) { return layout.dp_counts(buckets[k].buffer, buckets[k].bucket); };
  const auto own = [&](std::size_t k) { return counts(k)[static_cast<std::size_t>(place.dp)]; };
  const auto post = [&](std::size_t k) {
    if (!gathers) return;
    plan.work(phases::dp_gather, {1, whole(k)});
    plan.take(whole(k), bf16 ? "2-byte elements" : "bucket", type);
    plan_posted_gather(plan, counts(k), type, true);
    plan.give_back(own(k), "update");
  };
  const auto wait = [&](std::size_t k) {
    if (!gathers) return;
    plan.work(phases::await_gather, {1, whole(k)});
    plan_posted_gather(plan, counts(k), type, false);
    if (bf16) plan.take(whole(k), "bucket");
    if (bf16) plan.give_back(whole(k), "2-byte elements", type);
  };
  const auto work = [&](std::size_t k) {
    const auto [b, number] = buckets[k];
    for (const int index : layout.owned_parameters(b, number, place.dp))
      plan_matrix_step(plan, layout, settings, layout.buffers[b].parameters[index]);
    gathers ? plan.give_back(whole(k), "bucket") : plan.give_back(own(k), "update");
  };
  if (schedule == Schedule::all_at_once) {
    for (std::size_t k = 0; k < buckets.size(); ++k) post(k);
    for (std::size_t k = 0; k < buckets.size(); ++k) wait(k);
    for (std::size_t k = 0; k < buckets.size(); ++k) work(k);
  } else {
    const bool ahead = schedule == Schedule::pipelined;
    if (ahead && !buckets.empty()) post(0);
    for (std::size_t k = 0; k < buckets.size(); ++k) {
      if (!ahead) post(k);
      if (ahead && k + 1 < buckets.size()) post(k + 1);
      wait(k);
      work(k);
    }
  }
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    plan.work(phases::gather_weights, {1, whole(k)});
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, own(k), whole(k));
  }
  return plan;
}

}  // namespace muonwalk
