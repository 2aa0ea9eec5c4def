#include "sim/ranks/remote_rank.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

[[noreturn]] void refuse_frame() { throw RunError("what an agent has sent is nothing that agents send"); }

}  // namespace

RemoteRank::RemoteRank(FramedConnection& connection, const Hello& hello, const Hello& own, ProgressSlot& slot)
    : connection_(&connection),
      agent_pid_(hello.pid),
      slot_(&slot),
      one_clock_(!own.boot.empty() && hello.boot == own.boot) {
  ended_ = false;
  lives_on(hello.host);
}

void RemoteRank::take_news() {
  connection_->flush();
  while (!ended_) {
    const std::optional<Frame> frame = connection_->receive();
    if (!frame) break;
    heard_ = true;
    taken_ += frame->bytes.size() + kFrameHeader;
    take(*frame);
  }
  if (taken_ != told_taken_) {
    send_value(*connection_, AgentFrame::taken, taken_);
    told_taken_ = taken_;
  }
  if (ended_ || !connection_->ended()) return;
  out_of_sight_ = fmt::format("the process {} that was started for it is gone, or its host is ({})", agent_pid_,
                              connection_->reason());
  ended_ = true;
  status_ = kUnknownStatus;
}

void RemoteRank::take(const Frame& frame) {
  RankSnapshot snapshot;
  int status = 0;
  if (frame.type == frame_type(AgentFrame::snapshot) && read_value(frame, snapshot)) {
    take_snapshot(snapshot);
  } else if (frame.type == frame_type(AgentFrame::records)) {
    take_records(frame);
  } else if (frame.type == frame_type(AgentFrame::ended) && read_value(frame, status)) {
    ended_ = true;
    status_ = status;
    stop_signal_ = 0;
  } else {
    refuse_frame();
  }
}

void RemoteRank::take_snapshot(const RankSnapshot& snapshot) {
  // What has taken longest to come says least about the difference of the clocks.
  const double behind = monotonic_seconds() - snapshot.at;
  if (!one_clock_ && (!clock_known_ || behind < behind_)) behind_ = behind;
  clock_known_ = true;
  last_ = snapshot;
  stop_signal_ = snapshot.stop_signal;
  slot_->stage = snapshot.stage;
  slot_->waits_for = snapshot.waits_for;
  slot_->waits_in = snapshot.waits_in;
  slot_->signs = snapshot.signs;
  std::copy_n(snapshot.step, sizeof slot_->step - 1, slot_->step);
}

void RemoteRank::take_records(const Frame& frame) {
  for (std::size_t done = 0; done < frame.bytes.size();) {
    const auto [place, room] = reader_.room();
    const std::size_t count = std::min(room, frame.bytes.size() - done);
    std::memcpy(place, frame.bytes.data() + done, count);
    reader_.took(count);
    done += count;
  }
  std::vector<Report> reports = reader_.take();
  for (Report& report : reports) {
    if (auto* failed = std::get_if<Failed>(&report)) failed->at += behind_;
    if (auto* traced = std::get_if<Traced>(&report)) move_to_own_clock(traced->batch);
  }
  sort_in(std::move(reports));
}

// All spans of a rank are moved by the same time: what is found out about the clocks later must not tear them apart.
void RemoteRank::move_to_own_clock(SpanBatch& batch) {
  if (!spans_behind_ns_) spans_behind_ns_ = std::llround(behind_ * 1e9);
  for (Span& span : batch.spans) {
    span.begin_ns += *spans_behind_ns_;
    span.end_ns += *spans_behind_ns_;
  }
  if (batch.full_since_ns != 0) batch.full_since_ns += *spans_behind_ns_;
}

void RemoteRank::end() {
  if (!ended_) connection_->send(frame_type(AgentFrame::kill), "");
  ended_ = true;
}

bool RemoteRank::wait_for_end(double seconds) {
  const double deadline = monotonic_seconds() + seconds;
  for (take_news(); !ended_; take_news()) {
    const double left = deadline - monotonic_seconds();
    if (left <= 0) break;
    pollfd polled = {connection_->descriptor(), connection_->events(), 0};
    poll(&polled, 1, static_cast<int>(std::min(left, 0.1) * 1000) + 1);
  }
  return ended_;
}

void RemoteRank::tell(const Posted& posted) {
  const auto length = static_cast<std::uint32_t>(posted.key.size());
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += posted.key;
  bytes.append(posted.value.begin(), posted.value.end());
  if (!connection_->send(frame_type(AgentFrame::posted), bytes))
    throw RunError(fmt::format(
        "the process {} on {} that was started for a rank does not take what it is told; see whether it is stopped",
        agent_pid_, host()));
}

void RemoteRank::say_goodbye() {
  if (!ended_) connection_->send(frame_type(AgentFrame::goodbye), "");
}

}  // namespace muonwalk::sim
