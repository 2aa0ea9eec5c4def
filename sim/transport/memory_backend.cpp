#include "sim/transport/memory_backend.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using Clock = std::chrono::steady_clock;

class MemoryMessage;

// All that goes from one rank to one other. A message and the receive that it is for find each other here. Two threads
// use a channel and no others, so that pairs of ranks never wait for each other's locks.
struct Channel {
  // Of messages that have not found their other end, in the order in which they were posted. All of them are sends, or
  // all are receives.
  using Unmatched = std::vector<MemoryMessage*>;

  std::mutex mutex;
  std::condition_variable changed;
  Unmatched of_collectives;
  Unmatched from_rank_to_rank;
};

// Up to this size the message is copied at once, by whoever comes second; a larger one by whoever waits for it first,
// so that two ranks that both have much to copy share the work.
constexpr std::int64_t copied_at_once = 4096;

}  // namespace

struct MemoryGroup::Shared {
  Shared(std::string group_name, int ranks, std::chrono::milliseconds limit)
      : group(std::move(group_name)),
        size(ranks),
        timeout(limit),
        channels(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

  Channel& channel(int from, int to) { return channels[static_cast<std::size_t>(from * size + to)]; }

  // Only the first reason counts; it is the cause, later ones are consequences.
  void abort(const std::string& why) {
    {
      const std::lock_guard<std::mutex> lock(reason_mutex);
      if (broken) return;
      reason = why;
      broken = true;
    }
    for (Channel& channel : channels) {
      // Taking the lock makes sure that a rank which has just looked is already waiting when it is woken.
      const std::lock_guard<std::mutex> lock(channel.mutex);
      channel.changed.notify_all();
    }
  }

  void require_whole() {
    if (!broken) return;
    const std::lock_guard<std::mutex> lock(reason_mutex);
    throw RunError(reason);
  }

  std::string group;
  int size;
  std::chrono::milliseconds timeout;
  std::vector<Channel> channels;  // [from][to]
  std::atomic<bool> broken{false};
  std::mutex reason_mutex;  // may be taken while a channel's lock is held, never the other way round
  std::string reason;
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
        channel_(sends ? shared_->channel(rank, peer) : shared_->channel(peer, rank)) {}

  // Nobody may start, or still be at, copying from or into memory that belongs to the caller again.
  ~MemoryMessage() override {
    std::unique_lock<std::mutex> lock(channel_.mutex);
    channel_.changed.wait(lock, [&] { return stage_ != Stage::being_copied; });
    if (stage_ == Stage::unmatched) {
      auto& waiting = unmatched();
      waiting.erase(std::remove(waiting.begin(), waiting.end(), this), waiting.end());
    } else if (stage_ == Stage::matched) {
      other_end_->stage_ = Stage::left_alone;
    }
  }

  // Finds the other end, if it has been posted.
  void post() {
    std::unique_lock<std::mutex> lock(channel_.mutex);
    shared_->require_whole();
    auto& waiting = unmatched();
    if (waiting.empty() || waiting.front()->sends_ == sends_) {
      waiting.push_back(this);
      stage_ = Stage::unmatched;
      return;
    }
    MemoryMessage& other = *waiting.front();
    const MemoryMessage& to = sends_ ? other : *this;
    const MemoryMessage& from = sends_ ? *this : other;
    const std::string wrong =
        mismatch(shared_->group, to.rank_, to.envelope_, to.bytes_, from.rank_, from.envelope_, from.bytes_);
    if (!wrong.empty()) {
      lock.unlock();
      fail(wrong);
    }
    waiting.erase(waiting.begin());
    other_end_ = &other;
    other.other_end_ = this;
    stage_ = other.stage_ = Stage::matched;
    if (bytes_ <= copied_at_once) {
      copy();
      stage_ = other.stage_ = Stage::done;
    }
    channel_.changed.notify_all();
  }

  void wait(const WaitsFor& waits_for) override {
    std::unique_lock<std::mutex> lock(channel_.mutex);
    Clock::time_point deadline{};
    while (stage_ != Stage::done) {
      if (stage_ == Stage::matched) {
        copy_outside_of(lock);
        return;
      }
      if (deadline == Clock::time_point()) {
        waited_for_ = true;
        lock.unlock();
        waits_for(peer_);
        require_same_call();
        deadline = Clock::now() + shared_->timeout;
        lock.lock();
        continue;
      }
      shared_->require_whole();
      if (channel_.changed.wait_until(lock, deadline) == std::cv_status::timeout && Clock::now() >= deadline &&
          (stage_ == Stage::unmatched || stage_ == Stage::left_alone)) {
        lock.unlock();
        time_out();
      }
    }
  }

 private:
  enum class Stage { new_here, unmatched, matched, being_copied, done, left_alone };

  std::vector<MemoryMessage*>& unmatched() {
    return envelope_.from_rank_to_rank() ? channel_.from_rank_to_rank : channel_.of_collectives;
  }

  void copy() {
    if (bytes_ == 0) return;
    void* to = sends_ ? other_end_->data_ : data_;
    const void* from = sends_ ? data_ : other_end_->data_;
    std::memcpy(to, from, static_cast<std::size_t>(bytes_));
  }

  void copy_outside_of(std::unique_lock<std::mutex>& lock) {
    MemoryMessage& other = *other_end_;
    stage_ = other.stage_ = Stage::being_copied;
    lock.unlock();
    copy();
    lock.lock();
    stage_ = other.stage_ = Stage::done;
    channel_.changed.notify_all();
  }

  // Ranks that are in different calls wait for each other forever: two roots of one broadcast, or one rank in a recv
  // and the other in a collective. (A rank that is in a collective posts nothing else until the collective has ended.)
  void require_same_call() {
    std::string wrong;
    for (Channel* channel : {&shared_->channel(rank_, peer_), &shared_->channel(peer_, rank_)}) {
      const std::lock_guard<std::mutex> lock(channel->mutex);
      const bool apart = envelope_.from_rank_to_rank();
      for (const MemoryMessage* theirs : channel->of_collectives) note_crossing(*theirs, wrong);
      for (const MemoryMessage* theirs : channel->from_rank_to_rank)
        if (!apart && theirs->waited_for_) note_crossing(*theirs, wrong);
    }
    if (wrong.empty()) return;
    {
      const std::lock_guard<std::mutex> lock(channel_.mutex);
      if (stage_ != Stage::unmatched) return;  // it was taken meanwhile, and what was found is of a later call
    }
    fail(wrong);
  }

  void note_crossing(const MemoryMessage& theirs, std::string& wrong) const {
    if (theirs.rank_ != peer_ || !wrong.empty()) return;
    if (mismatch("", 0, envelope_, 0, 0, theirs.envelope_, 0).empty()) return;  // the same call, just not there yet
    wrong = mismatch(shared_->group, rank_, envelope_, bytes_, peer_, theirs.envelope_, theirs.bytes_);
  }

  [[noreturn]] void fail(const std::string& why) {
    shared_->abort(why);
    shared_->require_whole();
    throw RunError(why);
  }

  [[noreturn]] void time_out() {
    const std::string who = "rank " + std::to_string(peer_);
    const std::string why = "rank " + std::to_string(rank_) + " of group " + shared_->group + " waited " +
                            std::to_string(shared_->timeout.count()) + " ms in " + collective_name(envelope_.kind) +
                            ", but " + (sends_ ? who + " did not fetch a message" : "no message came from " + who) +
                            "; a rank has stopped or makes other calls, or the timeout is too short";
    shared_->abort(why);
    throw TimeoutError(why);
  }

  Shared shared_;
  Envelope envelope_;
  int rank_;
  int peer_;
  bool sends_;
  void* data_;  // only read from where it is sent
  std::int64_t bytes_;
  Channel& channel_;
  // Guarded by the channel's lock; those of both ends change together.
  Stage stage_ = Stage::new_here;
  MemoryMessage* other_end_ = nullptr;
  bool waited_for_ = false;  // the rank sleeps until it is done
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
  void close(const std::string& reason) override { shared_->abort(reason); }

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

MemoryGroup::MemoryGroup(int size, std::chrono::milliseconds timeout, const std::string& name) {
  if (size < 1)
    throw std::invalid_argument("a group of " + std::to_string(size) + " ranks was asked for; it takes at least 1");
  shared_ = std::make_shared<Shared>(name, size, timeout);
}

MemoryGroup::~MemoryGroup() = default;

std::unique_ptr<Backend> MemoryGroup::backend(int rank) {
  if (rank < 0 || rank >= shared_->size)
    throw std::invalid_argument("rank " + std::to_string(rank) + " does not exist in a group of " +
                                std::to_string(shared_->size) + " ranks");
  return std::make_unique<MemoryBackend>(shared_, rank);
}

void MemoryGroup::abort(const std::string& reason) { shared_->abort(reason); }

}  // namespace muonwalk::sim
