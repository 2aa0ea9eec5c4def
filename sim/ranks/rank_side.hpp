#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "sim/ranks/progress.hpp"
#include "sim/ranks/rank.hpp"
#include "sim/ranks/report_stream.hpp"
#include "sim/transport/key_store.hpp"

namespace muonwalk::sim {

/// The rank's side of a world: one rank in a process of its own, which was forked for it (fork_rank).
class RankSide {
 public:
  /// Connects the rank with the others, through `key store`. It tells its records to the pipe `records`, and marks on
  /// `progress` how far it is. `goodbye` is the read end of a pipe that is closed when nobody is needed any more. Where
  /// something fails, here or in a step, the parent is told why, and the process ends.
  RankSide(const Options& options, int rank, int reports, int goodbye, KeyStore& store, Progress& progress);

  /// Runs a step and tells what the rank has said.
  void run(int step, const std::string& title, const RankBody& body);

  /// Waits until nobody is needed any more, and ends the process. Leaving without destroying the Gloo contexts saves
  /// 10 ms a peer.
  [[noreturn]] void leave();

 private:
  void tell(Report& report);
  void send(Report last);
  template <class Work>
  void guarded(const Work& work);
  [[noreturn]] void end_with(const std::string& sentence);

  static inline RankSide* speaking = nullptr;  // the one rank of this process
  int rank_;
  std::mutex mutex_;  // of records_: while ranks connect, a thread of Gloo's may have the last word
  RecordWriter reports_;
  int goodbye_;
  Progress* progress_;
  std::optional<RankSession> session_;
};

}  // namespace muonwalk::sim
