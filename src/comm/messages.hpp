#pragma once

// Private to checked_calls.cpp, messages.cpp and collectives.cpp: what they hand to each other.

#include "src/comm/communicator.hpp"

namespace muonwalk {

/// A message that the backend has taken on.
struct Communicator::Posted {
  std::unique_ptr<PostedMessage> message;
  Message about;         // for observers
  std::size_t line = 0;  // of the ledger, which counts it
};

/// What a transfer remembers. Destroying it before it was waited for breaks the group.
struct Transfer::State {
  ~State() {
    if (communicator != nullptr) communicator->drop(*this);
  }
  Communicator* communicator = nullptr;  // null unless it is under way
  Call call;                             // of the isend or irecv
  Communicator::Posted posted;
};

template <class Work>
void Communicator::observed(const Call& call, const Work& work) {
  require_whole();
  line_ = ledger_->begin_call(call.group, call.kind, call.type);
  current_ = &call;
  for (CallObserver* observer : observers_) observer->begins(call);
  work();
  for (CallObserver* observer : observers_) observer->ended(call);
}

template <class Work>
void Communicator::guarded(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    break_group(error.what());
    throw;
  }
}

}  // namespace muonwalk
