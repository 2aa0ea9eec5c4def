#include "src/optim/overlapped_step.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "src/numerics/bf16_rounding.hpp"

namespace muonwalk {

const char* schedule_name(Schedule schedule) {
  switch (schedule) {
    case Schedule::in_sequence:
      return "in sequence";
    case Schedule::all_at_once:
      return "all at once";
    case Schedule::pipelined:
      return "pipelined";
  }
  return "";
}

std::vector<BucketMove> moves_of(Schedule schedule, int buckets) {
  using Kind = BucketMove::Kind;
  std::vector<BucketMove> moves;
  const auto all = [&](Kind kind) {
    for (int k = 0; k < buckets; ++k) moves.push_back({kind, k});
  };
  switch (schedule) {
    case Schedule::in_sequence:
      for (int k = 0; k < buckets; ++k)
        for (const Kind kind : {Kind::post, Kind::wait, Kind::work}) moves.push_back({kind, k});
      break;
    case Schedule::all_at_once:
      all(Kind::post);
      all(Kind::wait);
      all(Kind::work);
      break;
    case Schedule::pipelined:
      for (int k = 0; k < buckets; ++k) {
        if (k == 0) moves.push_back({Kind::post, 0});
        if (k + 1 < buckets) moves.push_back({Kind::post, k + 1});
        moves.push_back({Kind::wait, k});
        moves.push_back({Kind::work, k});
      }
      break;
  }
  return moves;
}

PostedGather::PostedGather(Communicator& dp, std::vector<Index> counts, Precision precision)
    : dp_(&dp), begins_(1, 0), precision_(precision) {
  for (const Index count : counts) begins_.push_back(begins_.back() + count);
  if (precision == Precision::bf16)
    travelling_ = FlatOf<bfloat16>(static_cast<std::size_t>(begins_.back()));
  else
    bucket_ = Flat(static_cast<std::size_t>(begins_.back()));
}

void PostedGather::fill(const Flat& shard) {
  const auto own = static_cast<std::size_t>(dp_->rank());
  const Index begin = begins_[own];
  if (static_cast<Index>(shard.size()) != begins_[own + 1] - begin)
    throw std::invalid_argument("a gather was to be filled with a shard of " + std::to_string(shard.size()) +
                                " elements, but this rank owns " + std::to_string(begins_[own + 1] - begin) +
                                " of the bucket; give it what dp_slice says.");
  if (precision_ == Precision::bf16)
    to_bf16(shard.data(), static_cast<Index>(shard.size()), travelling_.data() + begin);
  else
    std::copy(shard.begin(), shard.end(), bucket_.begin() + begin);
}

// Each rank begins with its right-hand neighbour, so that not everybody talks to rank 0 first.
template <class T>
void PostedGather::send_from(const FlatOf<T>& bucket) {
  const auto own = static_cast<std::size_t>(dp_->rank());
  for (int step = 1; step < dp_->size(); ++step)
    sending_.push_back(
        dp_->isend(bucket.data() + begins_[own], begins_[own + 1] - begins_[own], (dp_->rank() + step) % dp_->size()));
}

template <class T>
void PostedGather::receive_into(FlatOf<T>& bucket) {
  for (int step = 1; step < dp_->size(); ++step) {
    const int peer = (dp_->rank() + dp_->size() - step) % dp_->size();
    const auto theirs = static_cast<std::size_t>(peer);
    receiving_.push_back(dp_->irecv(bucket.data() + begins_[theirs], begins_[theirs + 1] - begins_[theirs], peer));
  }
}

void PostedGather::send() { precision_ == Precision::bf16 ? send_from(travelling_) : send_from(bucket_); }

void PostedGather::receive() { precision_ == Precision::bf16 ? receive_into(travelling_) : receive_into(bucket_); }

Flat PostedGather::wait() {
  for (Transfer& each : receiving_) each.wait();
  for (Transfer& each : sending_) each.wait();
  receiving_.clear();
  sending_.clear();
  if (precision_ == Precision::fp32) return std::move(bucket_);
  Flat bucket(travelling_.size());
  from_bf16(travelling_.data(), static_cast<Index>(travelling_.size()), bucket.data());
  travelling_ = FlatOf<bfloat16>();
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

std::vector<Flat> updates_of_all(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                                 MuonState& state) {
  require_own_gradients("updates_of_all", settings.summed_gradients);
  std::vector<Flat> updates;
  for (const BucketNumber bucket : context.layout.all_buckets())
    updates.push_back(own_update(context, settings, gradients, state, bucket));
  return updates;
}

void work_on_bucket(const StepContext& context, const MuonSettings& settings, int bucket, const Flat& elements,
                    MuonState& state) {
  const Layout& layout = context.layout;
  const auto [b, k] = layout.all_buckets()[static_cast<std::size_t>(bucket)];
  const Range whole = layout.bucket({b, k}).range, own = layout.dp_slice(b, k, context.place.dp);
  const Index begin = static_cast<Index>(elements.size()) == whole.size() ? whole.begin : own.begin;
  for (const int index : layout.bucket({b, k}).parameters)
    matrix_step(context, settings, layout.buffers[static_cast<std::size_t>(b)].parameters[index], elements, begin,
                state);
}

void gather_all_weights(const StepContext& context, MuonState& state) {
  for (const auto& [b, k] : context.layout.all_buckets()) {
    context.begin(phases::gather_weights);
    all_gather_weights(context.dp, state.weights[b][k], context.layout.dp_counts(b, k));
  }
}

void overlapped_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                     MuonState& state, Schedule schedule) {
  require_own_gradients("overlapped_step", settings.summed_gradients);
  require_fitting(
      "overlapped_step", context,
      {{"weights", state.weights}, {"momentum", state.momentum, /*whole=*/false}, {"gradients", gradients}});
  if (settings.gather != Gather::buckets)
    throw std::invalid_argument(
        "overlapped_step was asked to gather cut matrices alone, but it posts whole buckets; take full_step for that.");

  const std::vector<BucketNumber> buckets = context.layout.all_buckets();
  // Each bucket's update: my shard until it is posted, and whole once it has been waited for.
  std::vector<Flat> updates = updates_of_all(context, settings, gradients, state);
  std::vector<std::optional<PostedGather>> under_way(buckets.size());
  const bool gathers = gathers_buckets(context.layout, settings);
  for (const BucketMove& move : moves_of(schedule, static_cast<int>(buckets.size()))) {
    const auto number = static_cast<std::size_t>(move.bucket);
    Flat& update = updates[number];
    if (move.kind == BucketMove::Kind::post && gathers) {
      context.begin(phases::dp_gather);
      const std::vector<Index> counts = context.layout.dp_counts(buckets[number].buffer, buckets[number].bucket);
      under_way[number].emplace(start_dp_gather(context.dp, update, counts, settings.gathered()));
      update = Flat();
    }
    if (move.kind == BucketMove::Kind::wait && gathers) {
      context.begin(phases::await_gather);
      update = under_way[number]->wait();
    }
    if (move.kind == BucketMove::Kind::work) {
      work_on_bucket(context, settings, move.bucket, update, state);
      update = Flat();
    }
  }
  gather_all_weights(context, state);
}

OverlappedMuon::OverlappedMuon(const MuonSettings& settings, Schedule schedule) : Muon(settings), schedule_(schedule) {
  settings_.gather = Gather::buckets;
}

void OverlappedMuon::step(const StepContext& context, const BucketsView& gradients) {
  overlapped_step(context, settings_, gradients, state_, schedule_);
  ++steps_;
}

Plan OverlappedMuon::plan(const Layout& layout, const Place& place) const {
  return overlapped_plan(layout, place, settings_, schedule_);
}

}  // namespace muonwalk
