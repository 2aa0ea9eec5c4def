#pragma once

#include <vector>

#include "src/optim/full_step.hpp"

namespace muonwalk {

/// When a step starts to gather its buckets, and when it waits for them.
enum class Schedule {
  in_sequence,  ///< a bucket is posted, waited for and worked on before the next one
  all_at_once,  ///< all are posted, then all are waited for, then all are worked on
  pipelined     ///< bucket k + 1 is posted before bucket k is waited for, and travels while k is worked on
};

/// "in sequence", "all at once", "pipelined".
const char* schedule_name(Schedule schedule);

/// One thing that a schedule does with one bucket.
struct BucketMove {
  /// Its gather is started, the rank waits until it has arrived, or the matrices in it are orthogonalized.
  enum class Kind { post, wait, work };
  Kind kind = Kind::post;  ///< which of them
  int bucket = 0;          ///< counted through all buffers

  /// All members are equal.
  friend bool operator==(const BucketMove& a, const BucketMove& b) { return a.kind == b.kind && a.bucket == b.bucket; }
};

/// What a schedule does with this number of buckets, in order. Each bucket is posted, waited for and worked on once.
std::vector<BucketMove> moves_of(Schedule schedule, int buckets);

/// The DP gather of one bucket (dp_gather) as posted messages: what each rank owns goes to every other rank, and the
/// rank may compute while they travel. The messages and bytes are those of the all-gather. What is under way uses the
/// memory in here, so it must be waited for.
class PostedGather {
 public:
  /// Room for the bucket. `counts` are the elements that each DP rank owns (Layout::dp_counts); in bf16 2-byte elements
  /// travel.
  PostedGather(Communicator& dp, std::vector<Index> counts, Precision precision);
  /// Puts this rank's shard into its place, rounded where it travels as bf16. Not while it travels. Throws
  /// std::invalid_argument where its size is not the one in `counts`.
  void fill(const Flat& shard);
  /// Starts to send that to every other rank.
  void send();
  /// Gets ready for what they send.
  void receive();
  /// Returns the whole bucket when all of it has arrived, and this rank's shard has been taken by everybody.
  Flat wait();

 private:
  template <class T>
  void send_from(const FlatOf<T>& bucket);
  template <class T>
  void receive_into(FlatOf<T>& bucket);

  Communicator* dp_;
  std::vector<Index> begins_;    // where each rank's elements begin, and at the end how many there are
  Flat bucket_;                  // what travels: these, or
  FlatOf<bfloat16> travelling_;  // in bf16 these; the other one is empty
  Precision precision_;
  std::vector<Transfer> receiving_, sending_;  // destroyed before the memory that they use
};

/// Room for a bucket, filled, sent, and ready to receive.
PostedGather start_dp_gather(Communicator& dp, const Flat& shard, const std::vector<Index>& counts,
                             Precision precision);

namespace phases {
/// The rank waits for a bucket whose gather was started as phases::dp_gather.
constexpr Phase await_gather = "wait for the bucket";
}  // namespace phases

// The parts of the step, for whoever wants to post and wait in another order. Buckets are counted through all buffers.

/// The reduce-scatter and the momentum of all buckets, one after the other: this rank's DP shards of the updates, and
/// the momentum in `state`. `gradients` are its own, in whole buckets; throws std::invalid_argument where the settings
/// say that they are summed already.
std::vector<Flat> updates_of_all(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                                 MuonState& state);

/// The work on one bucket: for each matrix of which this rank owns an element, TP gather, Newton–Schulz, TP shard, DP
/// shard, and its new weights. `elements` are the whole bucket, or this rank's shard where ranks own whole matrices.
void work_on_bucket(const StepContext& context, const MuonSettings& settings, int bucket, const Flat& elements,
                    MuonState& state);

/// The all-gather of all new weights, bucket by bucket.
void gather_all_weights(const StepContext& context, MuonState& state);

/// One step of Muon as full_step takes it, with the same bits, in three parts: the reduce-scatter and the momentum of
/// all buckets; their gathers and the work on their matrices, as the schedule has it; the all-gather of all new
/// weights. (In training the first part follows the backward pass bucket by bucket, and the last one goes before the
/// next forward pass.) Whole buckets are gathered unless ranks own whole matrices, so settings.gather must be
/// Gather::buckets, and gradients are not summed before; throws std::invalid_argument otherwise, and as require_fitting
/// does.
void overlapped_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                     MuonState& state, Schedule schedule);

/// What overlapped_step does on the rank at `place`, as a list: the operations of muon_plan in the order of the
/// schedule, with posted messages in place of each all-gather of a bucket.
Plan overlapped_plan(const Layout& layout, const Place& place, const MuonSettings& settings, Schedule schedule);

/// Muon that gathers while it computes.
class OverlappedMuon : public Muon {
 public:
  /// Takes nothing yet. Of the settings, `gather` is not asked.
  OverlappedMuon(const MuonSettings& settings, Schedule schedule);

  std::string name() const override { return std::string("Muon, gathers ") + schedule_name(schedule_); }
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override;

 private:
  Schedule schedule_;
};

}  // namespace muonwalk
