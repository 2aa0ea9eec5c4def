#include "sim/replay/span_buffer.hpp"

#include <algorithm>
#include <chrono>

namespace muonwalk::sim {

std::int64_t steady_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::ptrdiff_t SpanBuffer::add(const Span& span) {
  if (room_ == 0) {
    if (dropped_++ == 0) full_since_ns_ = span.begin_ns;
    return kNoRoom;
  }
  --room_;
  spans_.push_back(span);
  return static_cast<std::ptrdiff_t>(spans_.size()) - 1;
}

std::ptrdiff_t SpanBuffer::open(SpanKind kind, const std::string& name) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  Span span;
  span.kind = kind;
  span.name = static_cast<std::int32_t>(known - names_.begin());
  if (known == names_.end() && room_ > 0) names_.push_back(name);
  span.held_at_begin = memory_->live();
  span.begin_ns = now_ns();
  return add(span);
}

std::ptrdiff_t SpanBuffer::open_call(int group, const Call& call) {
  Span span;
  span.kind = SpanKind::call;
  span.group = static_cast<std::uint8_t>(group);
  span.collective = call.kind;
  span.type = call.type;
  span.elements_in = call.elements_in;
  span.elements_out = call.elements_out;
  span.held_at_begin = memory_->live();
  span.begin_ns = now_ns();
  return open_call_ = add(span);
}

void SpanBuffer::close(std::ptrdiff_t entry) {
  if (entry == kNoRoom) return;
  Span& span = spans_[static_cast<std::size_t>(entry)];
  span.end_ns = now_ns();
  span.held_at_end = memory_->live();
  if (entry == open_call_) open_call_ = kNoRoom;
}

void SpanBuffer::message(int group, const Call& call, const Message& message, int peer) {
  if (open_call_ != kNoRoom && message.sent) {
    Span& open_call = spans_[static_cast<std::size_t>(open_call_)];
    open_call.bytes += message.bytes;
    ++open_call.messages;
  }
  Span span;
  span.kind = message.sent ? SpanKind::sent : SpanKind::received;
  span.group = static_cast<std::uint8_t>(group);
  span.collective = message.from_rank_to_rank ? CollectiveKind::send : call.kind;
  span.type = call.type;
  span.peer = peer;
  span.number = static_cast<std::int32_t>(message.number);
  span.bytes = message.bytes;
  span.begin_ns = message.began_ns;
  span.end_ns = now_ns();
  add(span);
}

SpanBatch SpanBuffer::take() {
  SpanBatch batch{std::move(spans_), names_, dropped_, full_since_ns_};
  spans_.clear();
  return batch;
}

}  // namespace muonwalk::sim
