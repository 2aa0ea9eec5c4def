#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/progress.hpp"
#include "sim/replay/recording.hpp"
#include "sim/replay/span_buffer.hpp"
#include "src/comm/communicator.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk::sim {

/// All groups of a run, by their names: dp, tp and pp, and after them those of WorldSetUp::groups.
class RunGroups {
 public:
  /// The groups of one name, which share no rank.
  struct Named {
    std::string name;           ///< "dp"
    std::vector<Group> groups;  ///< In the order of their numbers.
    /// The number of the group that the rank is in; −1 where it is in none.
    int number_of(int rank) const;
  };
  /// Throws UsageError when one of WorldSetUp::groups can't be.
  explicit RunGroups(const Options& options);
  /// The groups by their names, in the same order for everybody.
  const std::vector<Named>& names() const { return names_; }
  /// The groups that the rank is in, one of each name; one without ranks where it is in none.
  std::vector<Group> of_rank(int rank) const;

 private:
  std::vector<Named> names_;
};

/// One rank's communicators, what they talk over, and what they count.
class RankGroups {
 public:
  /// Makes what moves the bytes in a group, by the name that tells it from other groups of the run ("dp 1"); `number`
  /// is the rank's number in it.
  using MakeBackend = std::function<std::unique_ptr<Backend>(const std::string& name, const Group& group, int number)>;
  /// Joins all groups of the rank.
  RankGroups(const RunGroups& all, const std::optional<LinkSpeed>& link, int rank, ProgressSlot& slot,
             const MakeBackend& backend);
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
  int calls = 0;  ///< so many have begun, in all groups, since somebody set it to 0
  /// Told of every message that this rank sends, when it has been sent; empty when nobody records the run.
  std::function<void(RecordedMove)> on_sent;

  /// The one of this name. Throws UsageError where the run has no such group, or the rank is not in it.
  Communicator& communicator(const std::string& name);
  /// Throws RunError when a group is broken, above all by a transfer that nobody waited for.
  void require_whole() const;
  /// What the kernel counted as sent in all groups; nothing where it is not known of one of them.
  std::optional<std::int64_t> kernel_bytes_sent() const;
  /// What all groups sent besides the payload.
  std::int64_t header_bytes_sent() const;

 private:
  class Member;
  int rank_;
  std::vector<std::unique_ptr<Member>> members_;  // in the order of RunGroups::names
};

}  // namespace muonwalk::sim
