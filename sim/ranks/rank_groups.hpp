#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/progress.hpp"
#include "sim/replay/span_buffer.hpp"
#include "sim/transport/gloo_device.hpp"
#include "sim/transport/memory_backend.hpp"
#include "src/comm/communicator.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk::sim {

/// A message that a rank has sent, for those who record it.
struct SentMessage {
  int from = 0;                                   ///< the sender, a rank of the world
  int to = 0;                                     ///< the receiver, a rank of the world
  std::string group;                              ///< the name of the group in which it was sent
  CollectiveKind kind = CollectiveKind::barrier;  ///< the call that it belongs to
  ElementType type = ElementType::bytes;          ///< the elements' type
  std::int64_t bytes = 0;                         ///< the payload alone, without headers
};

/// The groups of a run, as rank `rank` sees them: dp, tp and pp, and after them those of Options::groups. Every rank
/// has the same names in the same order; where the rank is not in a group, that group has no ranks. Throws UsageError,
/// whatever the rank, when one of Options::groups can't be.
std::vector<Group> groups_of_rank(const Options& options, int rank);

/// One rank's communicators, what they talk over, and what they count.
class RankGroups {
 public:
  /// Makes what moves the bytes in a group, by the name that tells it from other groups of the run ("dp 1"); `number`
  /// is the rank's number in it.
  using MakeBackend = std::function<std::unique_ptr<Backend>(const std::string& name, const Group& group, int number)>;
  /// Joins all groups of the rank.
  RankGroups(const Options& options, int rank, ProgressSlot& slot, const MakeBackend& backend);
  ~RankGroups();
  RankGroups(const RankGroups&) = delete;
  RankGroups& operator=(const RankGroups&) = delete;

  Ledger ledger;                      ///< everything that the rank sent and received, in all groups
  MemoryMeter memory;                 ///< everything that it holds
  std::unique_ptr<SpanBuffer> trace;  ///< records its calls and messages; null unless traced
  /// Computes Newton–Schulz with chains where the rank has a GPU; empty where the processor does.
  ChainEngine chain_engine;
  /// The number of the rank's GPU; nothing where it has none.
  std::optional<int> gpu;
  /// Told of every message that this rank sends, when it has been sent; empty when nobody records the run.
  std::function<void(const SentMessage&)> on_sent;

  /// The one of this name. Throws UsageError where the run has no such group, or the rank is not in it.
  Communicator& communicator(const std::string& name);
  /// Throws RunError when a group is broken, above all by a transfer that nobody waited for.
  void require_whole() const;
  /// The kernel's counters of all groups; unknown where one of them is.
  KernelTraffic kernel_traffic() const;
  /// What all groups sent besides the payload.
  std::int64_t header_bytes_sent() const;

 private:
  class Member;
  int rank_;
  std::vector<std::unique_ptr<Member>> members_;  // in the order of groups_of_rank
};

/// A key store with room for what the ranks of a run write while their groups connect.
std::unique_ptr<KeyStore> board_for(const Options& options);

/// Connects one rank to its groups over Gloo, a context of its own for each group, and where NCCL was asked for, over
/// that as well. What Gloo's waits are limited to is `timeout`; NCCL's, in which no rank computes, to --timeout as
/// well.
std::unique_ptr<RankGroups> connect_over_gloo(const Options& options, int rank, KeyStore& store, Progress& progress,
                                              std::chrono::milliseconds timeout);

/// All groups of a run whose ranks are threads that talk through memory.
class MemoryGroups {
 public:
  /// A rank that waits for others longer than `timeout` gives up.
  MemoryGroups(const Options& options, std::chrono::milliseconds timeout);
  /// The groups of one rank.
  std::unique_ptr<RankGroups> join(int rank, Progress& progress);
  /// Breaks all groups: whoever waits in one of them gets a RunError that gives the reason.
  void abort(const std::string& reason);

 private:
  Options options_;
  std::vector<std::pair<std::string, std::unique_ptr<MemoryGroup>>> groups_;  // by the name that tells it from others
};

}  // namespace muonwalk::sim
