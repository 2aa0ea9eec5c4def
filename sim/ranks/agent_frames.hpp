#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/launch/frames.hpp"
#include "sim/ranks/progress.hpp"

namespace muonwalk::sim {

/// What an agent and the parent tell each other. Both are one program (Hello), so numbers go as they lie in memory.
enum class AgentFrame : std::uint8_t {
  hello,       ///< agent: who it is (Hello)
  begin,       ///< parent: a world begins; 32 bytes, the run number (secret_of_run)
  snapshot,    ///< agent: how its rank is (RankSnapshot)
  records,     ///< agent: bytes of what its rank tells
  ended,       ///< agent: the wait status of its rank, after all records
  posted,      ///< parent: a key of another rank's key store, its length first, and the value
  taken,       ///< parent: how many bytes of frames it has taken from this agent since the beginning
  goodbye,     ///< parent: nobody needs the rank any more; it may leave
  kill,        ///< parent: the rank has to end
  world_over,  ///< parent: an int: 0, the program goes on; or the code to exit with at once, and the rank has to end
  cause,       ///< parent: why, in a sentence, where nobody has begun: who was started by hand says it as well
  refused      ///< instead of an agent: which rank it would have been, and why its process refuses what was asked
};

/// As it travels.
constexpr std::uint8_t frame_type(AgentFrame frame) { return static_cast<std::uint8_t>(frame); }

/// How a rank is, as its agent sees it.
struct RankSnapshot {
  double at = 0;                                              ///< on the agent's monotonic clock
  double cpu_seconds = 0;                                     ///< see WatchedRank::cpu_seconds
  std::int32_t stop_signal = 0;                               ///< see WatchedRank::stop_signal
  std::int32_t wants_processor = 0;                           ///< see WatchedRank::wants_processor
  ProgressSlot::Stage stage = ProgressSlot::Stage::starting;  ///< this and what follows: see ProgressSlot
  std::int32_t waits_for = 0;
  CollectiveKind waits_in = CollectiveKind::barrier;
  std::uint64_t signs = 0;
  char step[sizeof ProgressSlot::step] = {};
};

/// So many bytes of frames an agent sends before the parent has taken them. They fit into the buffers of any
/// connection, so the parent may compute for as long as it likes: the kernels still answer each other, and silence
/// means that a host is gone.
constexpr std::uint64_t kMostUntaken = 48 << 10;
/// What a frame takes besides its bytes, for that count.
constexpr std::uint64_t kFrameHeader = 5;
/// The most bytes of records in a frame.
constexpr std::size_t kRecordChunk = 16 << 10;
/// Between snapshots.
constexpr double kSnapshotSeconds = 0.1;

/// Sends a frame that holds one value.
template <class Value>
bool send_value(FramedConnection& connection, AgentFrame type, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return connection.send(frame_type(type), &value, sizeof value);
}

/// The value in such a frame; false when it is not one.
template <class Value>
bool read_value(const Frame& frame, Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (frame.bytes.size() != sizeof value) return false;
  std::memcpy(&value, frame.bytes.data(), sizeof value);
  return true;
}

}  // namespace muonwalk::sim
