#include "sim/transport/memory_transport.hpp"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {

namespace {

using Clock = std::chrono::steady_clock;

// A message on offer: it lies in the sender's memory until the receiver has copied it.
struct Offer {
  enum class State { none, offered, being_copied };
  State state = State::none;
  const void* data = nullptr;
  std::int64_t bytes = 0;
  Transport::Call call;
};

// The desk of one rank: what the others offer it, and which of its own offers they have taken. Only the desk's lock
// guards it, so two pairs of ranks never wait for each other; bytes are copied outside of every lock.
struct Desk {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Offer> offers;   // by sender
  std::vector<char> taken_by;  // by receiver: 1 when it has copied the rank's offer
};

}  // namespace

struct MemoryMeeting::State {
  State(std::string group_name, int size, std::chrono::milliseconds limit)
      : group(std::move(group_name)), timeout(limit), desks(static_cast<std::size_t>(size)) {
    for (Desk& desk : desks) {
      desk.offers.resize(static_cast<std::size_t>(size));
      desk.taken_by.resize(static_cast<std::size_t>(size));
    }
  }

  // Only the first reason counts; it is the cause, later ones are consequences.
  void abort(const std::string& why) {
    {
      const std::lock_guard<std::mutex> lock(reason_mutex);
      if (broken) return;
      broken = true;
      reason = why;
    }
    for (Desk& desk : desks) {
      // Taking the lock makes sure that a rank which has just looked is already waiting when it is woken.
      const std::lock_guard<std::mutex> lock(desk.mutex);
      desk.changed.notify_all();
    }
  }

  bool is_broken() {
    const std::lock_guard<std::mutex> lock(reason_mutex);
    return broken;
  }

  [[noreturn]] void fail() {
    const std::lock_guard<std::mutex> lock(reason_mutex);
    throw RunError(reason);
  }

  std::string group;
  std::chrono::milliseconds timeout;
  std::vector<Desk> desks;
  std::mutex reason_mutex;  // may be taken while a desk's lock is held, never the other way round
  bool broken = false;
  std::string reason;
};

namespace {

template <class State>
class MemoryTransport : public Transport {
 public:
  MemoryTransport(std::shared_ptr<State> state, int rank) : state_(std::move(state)), rank_(rank) {}

  void exchange(const Call& call, const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
                Ledger& ledger) override {
    const Clock::time_point deadline = Clock::now() + state_->timeout;
    std::size_t offered = 0;
    try {
      if (state_->is_broken()) state_->fail();
      for (; offered < outgoing.size(); ++offered) {
        offer(call, outgoing[offered]);
        ledger.count_sent(outgoing[offered].bytes);
      }
      take_all(call, incoming, ledger, deadline);
      wait_until_taken(call, outgoing, deadline);
    } catch (...) {
      // The memory belongs to the caller again once this returns: nobody may start, or still be at, copying from it.
      for (std::size_t i = 0; i < offered; ++i) withdraw(outgoing[i]);
      throw;
    }
  }

 private:
  Desk& desk(int rank) { return state_->desks[static_cast<std::size_t>(rank)]; }

  void offer(const Call& call, const Outgoing& message) {
    Desk& there = desk(message.peer);
    const std::lock_guard<std::mutex> lock(there.mutex);
    Offer& place = there.offers[static_cast<std::size_t>(rank_)];
    place.state = Offer::State::offered;
    place.data = message.data;
    place.bytes = message.bytes;
    place.call = call;
    there.changed.notify_all();
  }

  // Takes the messages in the order in which they come.
  void take_all(const Call& call, const std::vector<Incoming>& incoming, Ledger& ledger, Clock::time_point deadline) {
    std::vector<bool> taken(incoming.size(), false);
    for (std::size_t left = incoming.size(); left > 0; --left) {
      const std::size_t next = wait_for_an_offer(call, incoming, taken, deadline);
      const Incoming& message = incoming[next];
      const Offer offer = desk(rank_).offers[static_cast<std::size_t>(message.peer)];
      const std::string wrong =
          mismatch(state_->group, rank_, call, message.bytes, message.peer, offer.call, offer.bytes);
      if (wrong.empty() && message.bytes > 0) {
        std::memcpy(message.data, offer.data, static_cast<std::size_t>(message.bytes));
      }
      give_back(message.peer);
      if (!wrong.empty()) {
        state_->abort(wrong);
        state_->fail();
      }
      ledger.count_received(offer.bytes);
      taken[next] = true;
    }
  }

  // The number of a message in `incoming` whose offer is there; from then on only this rank touches the offer.
  std::size_t wait_for_an_offer(const Call& call, const std::vector<Incoming>& incoming, const std::vector<bool>& taken,
                                Clock::time_point deadline) {
    Desk& here = desk(rank_);
    std::unique_lock<std::mutex> lock(here.mutex);
    for (;;) {
      if (state_->is_broken()) state_->fail();
      int missing = 0;
      for (std::size_t i = 0; i < incoming.size(); ++i) {
        if (taken[i]) continue;
        Offer& place = here.offers[static_cast<std::size_t>(incoming[i].peer)];
        if (place.state == Offer::State::offered) {
          place.state = Offer::State::being_copied;
          return i;
        }
        missing = incoming[i].peer;
      }
      if (here.changed.wait_until(lock, deadline) == std::cv_status::timeout && Clock::now() >= deadline) {
        lock.unlock();
        time_out(call, "no message came from rank " + std::to_string(missing));
      }
    }
  }

  // The offer's memory is free again, and its sender is told.
  void give_back(int sender) {
    Desk& here = desk(rank_);
    {
      const std::lock_guard<std::mutex> lock(here.mutex);
      here.offers[static_cast<std::size_t>(sender)].state = Offer::State::none;
      here.changed.notify_all();  // a sender that withdraws waits here
    }
    Desk& there = desk(sender);
    const std::lock_guard<std::mutex> lock(there.mutex);
    there.taken_by[static_cast<std::size_t>(rank_)] = 1;
    there.changed.notify_all();
  }

  void wait_until_taken(const Call& call, const std::vector<Outgoing>& outgoing, Clock::time_point deadline) {
    Desk& here = desk(rank_);
    std::unique_lock<std::mutex> lock(here.mutex);
    for (const Outgoing& message : outgoing) {
      while (!here.taken_by[static_cast<std::size_t>(message.peer)]) {
        if (state_->is_broken()) state_->fail();
        const std::string wrong = crossing_offer(here, call, outgoing);
        if (!wrong.empty()) {
          lock.unlock();
          state_->abort(wrong);
          state_->fail();
        }
        if (here.changed.wait_until(lock, deadline) == std::cv_status::timeout && Clock::now() >= deadline) {
          lock.unlock();
          time_out(call, "rank " + std::to_string(message.peer) + " did not fetch a message");
        }
      }
    }
    for (const Outgoing& message : outgoing) here.taken_by[static_cast<std::size_t>(message.peer)] = 0;
  }

  // A peer that has not taken this rank's message, but offers one of another call, will never take it: both would wait
  // for ever, for example as two roots of one broadcast. What is wrong, or nothing.
  std::string crossing_offer(const Desk& here, const Call& call, const std::vector<Outgoing>& outgoing) const {
    for (const Outgoing& message : outgoing) {
      const Offer& offer = here.offers[static_cast<std::size_t>(message.peer)];
      if (here.taken_by[static_cast<std::size_t>(message.peer)] || offer.state != Offer::State::offered) continue;
      const std::string wrong =
          mismatch(state_->group, rank_, call, offer.bytes, message.peer, offer.call, offer.bytes);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  void withdraw(const Outgoing& message) {
    Desk& there = desk(message.peer);
    std::unique_lock<std::mutex> lock(there.mutex);
    Offer& place = there.offers[static_cast<std::size_t>(rank_)];
    there.changed.wait(lock, [&] { return place.state != Offer::State::being_copied; });
    place.state = Offer::State::none;
  }

  [[noreturn]] void time_out(const Call& call, const std::string& what) {
    state_->abort("rank " + std::to_string(rank_) + " of group " + state_->group + " waited " +
                  std::to_string(state_->timeout.count()) + " ms in " + collective_name(call.kind) + ", but " + what +
                  "; a rank has stopped or makes other calls, or the timeout is too short");
    state_->fail();
  }

  std::shared_ptr<State> state_;
  int rank_;
};

}  // namespace

MemoryMeeting::MemoryMeeting(int size, std::chrono::milliseconds timeout, const std::string& group) {
  if (size < 1) {
    throw std::invalid_argument("a meeting of " + std::to_string(size) + " ranks was asked for; it takes at least 1");
  }
  state_ = std::make_shared<State>(group, size, timeout);
}

MemoryMeeting::~MemoryMeeting() = default;

std::unique_ptr<Transport> MemoryMeeting::transport(int rank) {
  if (rank < 0 || rank >= static_cast<int>(state_->desks.size())) {
    throw std::invalid_argument("rank " + std::to_string(rank) + " does not exist in a meeting of " +
                                std::to_string(state_->desks.size()) + " ranks");
  }
  return std::make_unique<MemoryTransport<State>>(state_, rank);
}

void MemoryMeeting::abort(const std::string& reason) { state_->abort(reason); }

}  // namespace muonwalk::sim
