#include "sim/transport/memory_backend.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/fibers/fibers.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

class MemoryMessage;

// Messages from one rank to one other that have not found their other end, in the order in which they were posted. All
// of them are sends, or all are receives.
using Unmatched = std::vector<MemoryMessage*>;

}  // namespace

struct MemoryGroup::Shared {
  // Of collectives, or of send and recv, from one rank to another.
  Unmatched& unmatched(int from, int to, bool from_rank_to_rank) {
    return lines[(std::uint64_t(from) * std::uint64_t(size) + std::uint64_t(to)) * 2 + (from_rank_to_rank ? 1 : 0)];
  }

  void break_up(const std::string& why);  // only the first reason counts; it is the cause, later ones are consequences

  void require_whole() const {
    if (!broken.empty()) throw RunError(broken);
  }

  std::string group;
  int size;
  std::unordered_map<std::uint64_t, Unmatched> lines = {};  // only those that were ever used; they stay where they are
  std::string broken = "";                                  // why no call works any more
};

namespace {

class MemoryMessage : public PostedMessage {
 public:
  using Shared = std::shared_ptr<MemoryGroup::Shared>;

  MemoryMessage(Shared shared, const Envelope& envelope, int rank, int peer, bool sends, void* data, std::int64_t bytes)
      : shared_(std::move(shared)),
        envelope_(envelope),
        rank_(rank),
        peer_(peer),
        sends_(sends),
        data_(data),
        bytes_(bytes),
        line_(shared_->unmatched(sends ? rank : peer, sends ? peer : rank, envelope.from_rank_to_rank())) {}

  // The memory belongs to the caller again, so nobody may find it any more.
  ~MemoryMessage() override {
    if (!done_) line_.erase(std::remove(line_.begin(), line_.end(), this), line_.end());
  }

  // Finds the other end, if it has been posted.
  void post() {
    shared_->require_whole();
    if (line_.empty() || line_.front()->sends_ == sends_) {
      line_.push_back(this);
      return;
    }
    MemoryMessage& other = *line_.front();
    const MemoryMessage& to = sends_ ? other : *this;
    const MemoryMessage& from = sends_ ? *this : other;
    const std::string wrong =
        mismatch(shared_->group, to.rank_, to.envelope_, to.bytes_, from.rank_, from.envelope_, from.bytes_);
    if (!wrong.empty()) fail(wrong);
    line_.erase(line_.begin());
    if (bytes_ > 0) std::memcpy(to.data_, from.data_, static_cast<std::size_t>(bytes_));
    done_ = other.done_ = true;
    other.wake();
  }

  void wait(const WaitsFor& waits_for) override {
    if (done_) return fiber::may_hand_on();
    waits_for(peer_);
    require_same_call();
    waiter_ = fiber::self();
    while (!done_) {
      shared_->require_whole();
      fiber::wait();
    }
    waiter_ = kNobody;
  }

  void wake() const {
    if (waiter_ != kNobody) fiber::wake(waiter_);
  }

 private:
  static constexpr int kNobody = -1;

  // Ranks that are in different calls wait for each other forever: two roots of one broadcast, or one rank in a recv
  // and the other in a collective. (A rank that is in a collective posts nothing else until the collective has ended.)
  void require_same_call() {
    for (const bool back : {false, true}) {
      const int from = back ? peer_ : rank_, to = back ? rank_ : peer_;
      for (const MemoryMessage* theirs : shared_->unmatched(from, to, false)) require_not_crossing(*theirs);
      if (envelope_.from_rank_to_rank()) continue;
      for (const MemoryMessage* theirs : shared_->unmatched(from, to, true))
        if (theirs->waiter_ != kNobody) require_not_crossing(*theirs);
    }
  }

  void require_not_crossing(const MemoryMessage& theirs) {
    if (theirs.rank_ != peer_) return;
    if (mismatch("", 0, envelope_, 0, 0, theirs.envelope_, 0).empty()) return;  // the same call, just not there yet
    fail(mismatch(shared_->group, rank_, envelope_, bytes_, peer_, theirs.envelope_, theirs.bytes_));
  }

  [[noreturn]] void fail(const std::string& why) {
    shared_->break_up(why);
    throw RunError(shared_->broken);
  }

  Shared shared_;
  Envelope envelope_;
  int rank_;
  int peer_;
  bool sends_;
  void* data_;  // only read from where it is sent
  std::int64_t bytes_;
  Unmatched& line_;
  bool done_ = false;
  int waiter_ = kNobody;  // the fiber that waits for it
};

class MemoryBackend : public Backend {
 public:
  MemoryBackend(MemoryMessage::Shared shared, int rank) : shared_(std::move(shared)), rank_(rank) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    return post(envelope, peer, true, const_cast<void*>(data), bytes);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    return post(envelope, peer, false, data, bytes);
  }
  void close(const std::string& reason) override { shared_->break_up(reason); }

 private:
  std::unique_ptr<PostedMessage> post(const Envelope& envelope, int peer, bool sends, void* data, std::int64_t bytes) {
    auto message = std::make_unique<MemoryMessage>(shared_, envelope, rank_, peer, sends, data, bytes);
    message->post();
    return message;
  }

  MemoryMessage::Shared shared_;
  int rank_;
};

}  // namespace

void MemoryGroup::Shared::break_up(const std::string& why) {
  if (!broken.empty()) return;
  broken = why;
  for (const auto& [key, line] : lines)
    for (const MemoryMessage* message : line) message->wake();
}

MemoryGroup::MemoryGroup(int size, const std::string& name) {
  if (size < 1)
    throw std::invalid_argument("a group of " + std::to_string(size) + " ranks was asked for; it takes at least 1");
  shared_ = std::make_shared<Shared>(Shared{name, size});
}

MemoryGroup::~MemoryGroup() = default;

std::unique_ptr<Backend> MemoryGroup::backend(int rank) {
  if (rank < 0 || rank >= shared_->size)
    throw std::invalid_argument("rank " + std::to_string(rank) + " does not exist in a group of " +
                                std::to_string(shared_->size) + " ranks");
  return std::make_unique<MemoryBackend>(shared_, rank);
}

}  // namespace muonwalk::sim
