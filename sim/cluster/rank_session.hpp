#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/cluster/options.hpp"
#include "sim/cluster/rank.hpp"
#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/record.hpp"

namespace muonwalk::sim {

/// What a step does on one rank.
using RankBody = std::function<void(Rank&)>;

/// Runs steps on one rank and keeps what the rank said; the same for a rank that is a process and one that is a thread.
class RankSession {
 public:
  /// The session of rank `rank` with its connected groups. `progress` must outlive it.
  RankSession(const Options& options, int rank, std::unique_ptr<RankGroups> groups, ProgressBoard& progress);

  /// Runs the body as step number `step` (from 1 on; 0 for an errand) and returns its records. Exceptions pass through.
  /// A fault that was asked for happens here, before the body.
  std::vector<Record> run(int step, const std::string& title, const RankBody& body);

  /// The rank's communicators and counters.
  RankGroups& groups() { return *groups_; }

 private:
  Options options_;
  std::unique_ptr<RankGroups> groups_;
  ProgressBoard* progress_;
  Rank rank_;
};

}  // namespace muonwalk::sim
