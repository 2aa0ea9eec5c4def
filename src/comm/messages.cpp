#include "src/comm/messages.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk {

Message Communicator::next_message(const Envelope& envelope, bool sent, int peer, std::int64_t bytes) {
  const bool apart = envelope.from_rank_to_rank();
  const std::int64_t number = numbers_[apart][sent][static_cast<std::size_t>(peer)]++;
  return {sent, peer, bytes, number, observers_.empty() ? 0 : observers_.front()->now_ns(), apart};
}

Communicator::Posted Communicator::post_send(const Envelope& envelope, const Exchange::Outgoing& message) {
  const Message about = next_message(envelope, true, message.peer, message.bytes);
  Posted posted{backend_->post_send(envelope, message.peer, message.data, message.bytes), about, line_};
  ledger_->count_sent(line_, message.bytes);
  return posted;
}

Communicator::Posted Communicator::post_receive(const Envelope& envelope, const Exchange::Incoming& message) {
  const Message about = next_message(envelope, false, message.peer, message.bytes);
  return {backend_->post_receive(envelope, message.peer, message.data, message.bytes), about, line_};
}

void Communicator::wait(CollectiveKind kind, Posted& posted) {
  posted.message->wait([this, kind](int peer) {
    for (CallObserver* observer : observers_) observer->waits(kind, peer);
  });
  for (CallObserver* observer : observers_) observer->goes_on();
  if (!posted.about.sent) ledger_->count_received(posted.line, posted.about.bytes);
}

void Communicator::tell(const Call& call, const Message& message) const {
  for (CallObserver* observer : observers_) observer->moved(call, message);
}

// The messages are destroyed after the group was broken, where it is: nobody is at their memory then.
void Communicator::exchange(const Exchange& all) {
  if (Exchanger* const exchanger = backend_->exchanger()) return exchange_together(*exchanger, all);
  if (all.own_bytes > 0 && all.own_place != all.own)
    std::memcpy(all.own_place, all.own, static_cast<std::size_t>(all.own_bytes));
  std::vector<Posted> receiving, sending;
  receiving.reserve(all.incoming.size());
  sending.reserve(all.outgoing.size());
  guarded([&] {
    for (const Exchange::Incoming& message : all.incoming) receiving.push_back(post_receive(all.envelope, message));
    for (const Exchange::Outgoing& message : all.outgoing) sending.push_back(post_send(all.envelope, message));
    for (Posted& posted : receiving) wait(all.envelope.kind, posted);
    for (Posted& posted : sending) wait(all.envelope.kind, posted);
  });
  for (const Posted& posted : sending) tell(*current_, posted.about);
  for (const Posted& posted : receiving) tell(*current_, posted.about);
}

void Communicator::exchange_together(Exchanger& exchanger, const Exchange& all) {
  for (const Exchange::Outgoing& message : all.outgoing)
    moved_together_.push_back(next_message(all.envelope, true, message.peer, message.bytes));
  for (const Exchange::Incoming& message : all.incoming)
    moved_together_.push_back(next_message(all.envelope, false, message.peer, message.bytes));
  exchanger.exchange(all);
  for (const Exchange::Outgoing& message : all.outgoing) ledger_->count_sent(line_, message.bytes);
  for (const Exchange::Incoming& message : all.incoming) ledger_->count_received(line_, message.bytes);
}

void Communicator::send_or_receive(const Call& call, const void* from, void* to) {
  observed(call, [&] {
    Posted posted;
    guarded([&] {
      posted = post(call, from, to);
      wait(call.kind, posted);
    });
    tell(call, posted.about);
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
    if (call.kind == CollectiveKind::send) tell(call, state->posted.about);
  });
  return Transfer(std::move(state));
}

void Communicator::finish(Transfer::State& state) {
  const Call call{group_, CollectiveKind::wait, state.call.type, 0, 0, state.call.peer};
  observed(call, [&] {
    guarded([&] { wait(state.call.kind, state.posted); });
    if (state.call.kind == CollectiveKind::recv) tell(state.call, state.posted.about);
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
