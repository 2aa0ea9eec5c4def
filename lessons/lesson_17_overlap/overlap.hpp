#pragma once

#include <variant>
#include <vector>

#include "src/optim/full_step.hpp"

namespace muonwalk {

/// When a step starts to gather its buckets, and when it waits for them.
enum class Schedule {
  in_sequence,  ///< a bucket is posted, waited for and worked on before the next one
  all_at_once,  ///< all are posted, then all are waited for, then all are worked on
  pipelined     ///< bucket k + 1 is posted before bucket k is waited for, and travels while k is worked on
};

/// The DP gather of one bucket (dp_gather) as posted messages: what each rank owns goes to every other rank, and the
/// rank may compute while they travel. The messages and bytes are those of the all-gather. What is under way uses the
/// memory in here, so it must be waited for.
class PostedGather {
 public:
  /// Room for the bucket. `counts` are the elements that each DP rank owns (Layout::dp_counts); in bf16, 2 bytes each.
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
  Communicator* dp_;
  std::vector<Index> begins_;                    // where each rank's elements begin, and at the end how many there are
  std::variant<Flat, FlatOf<bfloat16>> bucket_;  // as it travels
  std::vector<Transfer> receiving_, sending_;    // destroyed before the memory that they use
};

/// Room for a bucket, filled, sent, and ready to receive.
PostedGather start_dp_gather(Communicator& dp, const Flat& shard, const std::vector<Index>& counts,
                             Precision precision);

namespace phases {
/// The rank waits for a bucket whose gather was started as phases::dp_gather.
constexpr Phase await_gather = "wait for the bucket";
}  // namespace phases

/// What the rank at `place` does in a step in which buckets are gathered as the schedule has it, as a list: the
/// operations of muon_plan, with posted messages in place of each all-gather of a bucket. The reduce-scatter and the
/// momentum of all buckets come first, and the all-gathers of all new weights last. What is gathered are
/// whole buckets, or nothing where ranks own whole matrices (gathers_buckets). Throws std::invalid_argument where the
/// settings say that gradients are summed before the step.
Plan overlapped_plan(const Layout& layout, const Place& place, const MuonSettings& settings, Schedule schedule);

}  // namespace muonwalk
