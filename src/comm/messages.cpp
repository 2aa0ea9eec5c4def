#include "src/comm/messages.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Communicator::Posted Communicator::post_send(const Envelope& envelope, const Outgoing& message) {
  const bool apart = envelope.from_rank_to_rank();
  std::int64_t& number = numbers_[apart][0][static_cast<std::size_t>(message.peer)];
  const Message about{true, message.peer, message.bytes, number, observers_.empty() ? 0 : now_ns(), apart};
  Posted posted{backend_->post_send(envelope, message.peer, message.data, message.bytes), about, line_};
  ++number;
  ledger_->count_sent(line_, message.bytes);
  return posted;
}

Communicator::Posted Communicator::post_receive(const Envelope& envelope, const Incoming& message) {
  const bool apart = envelope.from_rank_to_rank();
  std::int64_t& number = numbers_[apart][1][static_cast<std::size_t>(message.peer)];
  const Message about{false, message.peer, message.bytes, number, observers_.empty() ? 0 : now_ns(), apart};
  Posted posted{backend_->post_receive(envelope, message.peer, message.data, message.bytes), about, line_};
  ++number;
  return posted;
}

void Communicator::wait(CollectiveKind kind, Posted& posted) {
  posted.message->wait([this, kind](int peer) {
    for (CallObserver* observer : observers_) observer->waits(kind, peer);
  });
  for (CallObserver* observer : observers_) observer->goes_on();
  if (!posted.about.sent) ledger_->count_received(posted.line, posted.about.bytes);
}

void Communicator::tell(const Call& call, const Posted& posted) const {
  for (CallObserver* observer : observers_) observer->moved(call, posted.about);
}

// The messages are destroyed after the group was broken, where it is: nobody is at their memory then.
void Communicator::exchange(const Envelope& envelope, const std::vector<Outgoing>& outgoing,
                            const std::vector<Incoming>& incoming) {
  std::vector<Posted> receiving, sending;
  receiving.reserve(incoming.size());
  sending.reserve(outgoing.size());
  guarded([&] {
    for (const Incoming& message : incoming) receiving.push_back(post_receive(envelope, message));
    for (const Outgoing& message : outgoing) sending.push_back(post_send(envelope, message));
    for (Posted& posted : receiving) wait(envelope.kind, posted);
    for (Posted& posted : sending) wait(envelope.kind, posted);
  });
  for (const Posted& posted : sending) tell(*current_, posted);
  for (const Posted& posted : receiving) tell(*current_, posted);
}

void Communicator::send_or_receive(const Call& call, const void* from, void* to) {
  observed(call, [&] {
    Posted posted;
    guarded([&] {
      posted = post(call, from, to);
      wait(call.kind, posted);
    });
    tell(call, posted);
  });
}

Communicator::Posted Communicator::post(const Call& call, const void* from, void* to) {
  const Envelope envelope{call.kind, call.type, 0, 0};
  const Index size = element_size(call.type);
  return call.kind == CollectiveKind::send ? post_send(envelope, {call.peer, from, call.elements_in * size})
                                           : post_receive(envelope, {call.peer, to, call.elements_out * size});
}

Transfer Communicator::transfer(const Call& call, const void* from, void* to) {
  auto state = std::make_unique<Transfer::State>();
  state->call = call;
  observed(call, [&] {
    guarded([&] { state->posted = post(call, from, to); });
    state->communicator = this;
    if (call.kind == CollectiveKind::send) tell(call, state->posted);
  });
  return Transfer(std::move(state));
}

void Communicator::finish(Transfer::State& state) {
  const Call call{group_, CollectiveKind::wait, state.call.type, 0, 0, state.call.peer};
  observed(call, [&] {
    guarded([&] { wait(state.call.kind, state.posted); });
    if (state.call.kind == CollectiveKind::recv) tell(state.call, state.posted);
  });
  state.communicator = nullptr;
}

void Communicator::drop(const Transfer::State& state) {
  break_group("rank " + std::to_string(rank_) + " of group " + group_ + " dropped a posted transfer (" +
              text(state.call) + ") without waiting for it; call wait() on every isend and irecv");
}

void Communicator::break_group(const std::string& reason) {
  if (!broken_.empty()) return;
  broken_ = reason;
  backend_->close(reason);
}

void Communicator::require_whole() const {
  if (!broken_.empty()) throw RunError(broken_);
}

Transfer::Transfer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Transfer::Transfer(Transfer&&) noexcept = default;
Transfer& Transfer::operator=(Transfer&&) noexcept = default;
Transfer::~Transfer() = default;

void Transfer::wait() {
  if (state_ == nullptr || state_->communicator == nullptr) {
    throw std::logic_error("a transfer was to be waited for that is not under way; each is waited for once");
  }
  state_->communicator->finish(*state_);
}

}  // namespace muonwalk
