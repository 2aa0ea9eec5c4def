#pragma once

#include <cstdint>
#include <vector>

#include "sim/ranks/agent_frames.hpp"
#include "sim/ranks/launched_run.hpp"
#include "sim/ranks/rank_process.hpp"
#include "sim/transport/key_store.hpp"

namespace muonwalk::sim {

/// What looks after a rank that is not on the parent's host, or at least not its child: it hands on to the parent
/// what the rank tells and how it is, and to the rank what others have written to their key stores. It never lets the
/// parent wait, and the rank only where the parent does not listen.
class Agent {
 public:
  /// `rank` is this process's child. `goodbye` is the write end of a pipe, closed when nobody needs the rank any more.
  Agent(LaunchedRun& run, RankProcess& rank, KeyStore& store, const ProgressSlot& slot, OpenFile& goodbye)
      : run_(&run), rank_(&rank), store_(&store), slot_(&slot), goodbye_(&goodbye) {}

  /// Returns when the world is over and the rank has ended. Ends the program when it has to end, or when the parent
  /// is lost; the rank is never left behind.
  void serve();

 private:
  void wait();
  void observe();
  void hand_on_records();
  void send_snapshot();
  bool take(const Frame& frame);
  void send(AgentFrame type, const void* bytes, std::size_t count);
  bool may_send(std::size_t bytes) const { return sent_ + bytes + kFrameHeader <= taken_ + kMostUntaken; }

  LaunchedRun* run_;
  RankProcess* rank_;
  KeyStore* store_;
  const ProgressSlot* slot_;
  OpenFile* goodbye_;
  bool all_read_ = false;  // of the rank's pipe: nothing more will come
  bool told_ended_ = false;
  double next_snapshot_ = 0;  // when it is due
  RankSnapshot told_;         // the last one
  std::uint64_t sent_ = 0, taken_ = 0;
  std::vector<char> chunk_ = std::vector<char>(kRecordChunk);
};

}  // namespace muonwalk::sim
