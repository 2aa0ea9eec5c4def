#include "src/comm/messages.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk {

Message Communicator::next_message(const Envelope& envelope, bool sent, const Exchange::Part& part) {
  const bool apart = envelope.from_rank_to_rank();
  const std::int64_t number = numbers_[apart][sent][static_cast<std::size_t>(part.peer)]++;
  return {sent, part.peer, part.bytes, number, observers_.empty() ? 0 : observers_.front()->now_ns(), apart};
}

Communicator::Posted Communicator::post(const Envelope& envelope, bool sent, const Exchange::Part& part) {
  const Message about = next_message(envelope, sent, part);
  Posted posted{sent ? backend_->post_send(envelope, part.peer, part.data, part.bytes)
                     : backend_->post_receive(envelope, part.peer, part.data, part.bytes),
                about, line_};
  if (sent) ledger_->count(line_, about);
  return posted;
}

void Communicator::wait(CollectiveKind kind, Posted& posted) {
  posted.message->wait([this, kind](int peer) {
    for (CallObserver* observer : observers_) observer->waits(kind, peer);
  });
  for (CallObserver* observer : observers_) observer->goes_on();
  if (!posted.about.sent) ledger_->count(posted.line, posted.about);
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
    for (const Exchange::Part& part : all.incoming) receiving.push_back(post(all.envelope, false, part));
    for (const Exchange::Part& part : all.outgoing) sending.push_back(post(all.envelope, true, part));
    for (Posted& posted : receiving) wait(all.envelope.kind, posted);
    for (Posted& posted : sending) wait(all.envelope.kind, posted);
  });
  for (const Posted& posted : sending) tell(*current_, posted.about);
  for (const Posted& posted : receiving) tell(*current_, posted.about);
}

void Communicator::exchange_together(Exchanger& exchanger, const Exchange& all) {
  const std::size_t before = moved_together_.size();
  for (const Exchange::Part& part : all.outgoing) moved_together_.push_back(next_message(all.envelope, true, part));
  for (const Exchange::Part& part : all.incoming) moved_together_.push_back(next_message(all.envelope, false, part));
  exchanger.exchange(all);
  for (std::size_t i = before; i < moved_together_.size(); ++i) ledger_->count(line_, moved_together_[i]);
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
  const Index bytes = (call.elements_in + call.elements_out) * element_size(call.type);
  const bool sent = call.kind == CollectiveKind::send;
  return post(envelope, sent, {call.peer, sent ? const_cast<void*>(from) : to, bytes});
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
