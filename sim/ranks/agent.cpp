#include "sim/ranks/agent.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/ranks/reports.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

RankSnapshot snapshot_of(const RankProcess& rank, const ProgressSlot& slot) {
  RankSnapshot snapshot;
  snapshot.at = monotonic_seconds();
  snapshot.cpu_seconds = rank.cpu_seconds();
  snapshot.wants_processor = rank.wants_processor() ? 1 : 0;
  snapshot.stop_signal = rank.stop_signal();
  snapshot.stage = slot.stage;
  snapshot.waits_for = slot.waits_for;
  snapshot.waits_in = slot.waits_in;
  snapshot.signs = slot.signs;
  std::copy_n(slot.step, sizeof snapshot.step, snapshot.step);
  return snapshot;
}

}  // namespace

void Agent::serve() {
  while (true) {
    wait();
    run_->require_parent([this] { rank_->end(); });
    observe();
    hand_on_records();
    if (!told_ended_ && monotonic_seconds() >= next_snapshot_ && may_send(sizeof(RankSnapshot))) send_snapshot();
    while (const std::optional<Frame> frame = run_->parent().receive())
      if (!take(*frame)) return;
    run_->parent().flush();
  }
}

// Until there is something to do.
void Agent::wait() {
  FramedConnection& parent = run_->parent();
  pollfd polled[2] = {{parent.descriptor(), parent.events(), 0},
                      {all_read_ || !may_send(kRecordChunk) ? -1 : rank_->file(), POLLIN, 0}};
  const double left = std::clamp(next_snapshot_ - monotonic_seconds(), 0.0, kSnapshotSeconds);
  const bool ends = all_read_ && !told_ended_;  // the rank has closed its pipe, and its process is about to end
  poll(polled, 2, told_ended_ ? 100 : ends ? 1 : static_cast<int>(left * 1000) + 1);
}

// A rank that was stopped, or goes on, is worth a snapshot at once.
void Agent::observe() {
  rank_->observe();
  if (rank_->stop_signal() != told_.stop_signal) next_snapshot_ = 0;
}

void Agent::hand_on_records() {
  while (!all_read_ && may_send(kRecordChunk + sizeof(RankSnapshot) + kFrameHeader)) {
    const bool had_ended = rank_->ended();  // then whatever it wrote is in the pipe by now
    const ssize_t got = read(rank_->file(), chunk_.data(), chunk_.size());
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      // The records may say that the rank has failed, and where it was then is in its slot by now.
      if (slot_->signs != told_.signs || slot_->stage != told_.stage) send_snapshot();
      send(AgentFrame::records, chunk_.data(), static_cast<std::size_t>(got));
      continue;
    }
    const bool nothing_now = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (nothing_now && !had_ended) return;
    all_read_ = true;
  }
  if (!all_read_ || !rank_->ended() || told_ended_) return;
  send_snapshot();
  const int status = rank_->status();
  send(AgentFrame::ended, &status, sizeof status);
  told_ended_ = true;
}

void Agent::send_snapshot() {
  told_ = snapshot_of(*rank_, *slot_);
  send(AgentFrame::snapshot, &told_, sizeof told_);
  next_snapshot_ = told_.at + kSnapshotSeconds;
}

// False when the world is over.
bool Agent::take(const Frame& frame) {
  int code = 0;
  std::uint32_t key_bytes = 0;
  switch (static_cast<AgentFrame>(frame.type)) {
    case AgentFrame::posted:
      if (frame.bytes.size() >= sizeof key_bytes) std::memcpy(&key_bytes, frame.bytes.data(), sizeof key_bytes);
      if (frame.bytes.size() < sizeof key_bytes + key_bytes) break;
      store_->set(std::string(frame.bytes.data() + sizeof key_bytes, key_bytes),
                  {frame.bytes.begin() + static_cast<std::ptrdiff_t>(sizeof key_bytes + key_bytes), frame.bytes.end()});
      return true;
    case AgentFrame::taken:
      if (read_value(frame, taken_)) return true;
      break;
    case AgentFrame::goodbye:
      goodbye_->close();
      return true;
    case AgentFrame::kill:
      rank_->end();
      all_read_ = told_ended_ = true;  // nobody asks any more
      return true;
    case AgentFrame::world_over:
      if (!read_value(frame, code)) break;
      rank_->end();
      if (code != 0) run_->end_agent(code, "");
      return false;
    default:
      break;
  }
  rank_->end();
  throw RunError(
      "rank 0's process has sent something that this program does not know; start the same program everywhere");
}

void Agent::send(AgentFrame type, const void* bytes, std::size_t count) {
  run_->parent().send(frame_type(type), bytes, count);
  sent_ += count + kFrameHeader;
}

}  // namespace muonwalk::sim
