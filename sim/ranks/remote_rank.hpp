#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/ranks/agent_frames.hpp"
#include "sim/ranks/hello.hpp"
#include "sim/ranks/report_stream.hpp"
#include "sim/ranks/watched_rank.hpp"

namespace muonwalk::sim {

/// A rank whose process is the child of an agent (agent.hpp): all that is known of it comes from that agent.
class RemoteRank : public WatchedRank {
 public:
  /// `hello` is what the agent has said of itself, `own` what this process says. Signs of the rank go to `slot`.
  /// `connection` and `slot` must outlive this object.
  RemoteRank(FramedConnection& connection, const Hello& hello, const Hello& own, ProgressSlot& slot);

  int file() const override { return ended_ ? -1 : connection_->descriptor(); }
  void take_news() override;
  void end() override;
  void leave_to_parent() override { ended_ = true; }
  bool wait_for_end(double seconds) override;
  double cpu_seconds() const override { return last_.cpu_seconds; }
  bool wants_processor() const override { return !ended_ && last_.wants_processor != 0; }
  bool heard_of() override { return std::exchange(heard_, false); }
  bool host_answers() const override { return connection_->host_answers(); }
  std::string out_of_sight() const override { return out_of_sight_; }

  /// Tells the rank what another one has written to its key store.
  void tell(const Posted& posted);
  /// Nobody needs it any more.
  void say_goodbye();

 private:
  void take(const Frame& frame);
  void take_snapshot(const RankSnapshot& snapshot);
  void take_records(const Frame& frame);
  void move_to_own_clock(SpanBatch& batch);

  FramedConnection* connection_;
  long agent_pid_;
  ProgressSlot* slot_;
  RankSnapshot last_;
  ReportReader reader_;
  std::uint64_t taken_ = 0, told_taken_ = 0;  // bytes of frames, for kMostUntaken
  bool one_clock_;                            // with this process
  double behind_ = 0;                         // seconds to add to what the agent's clock shows
  bool clock_known_ = false;
  std::optional<std::int64_t> spans_behind_ns_;  // the same for all spans that it records
  bool heard_ = true;
  std::string out_of_sight_;
};

}  // namespace muonwalk::sim
