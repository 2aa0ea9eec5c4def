#pragma once

// A backend in a few lines: what it takes to bring one. Everything typed, counted, traced and checked stands above it.

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/comm/backend.hpp"
#include "src/errors.hpp"

namespace muonwalk::testing {

/// The letters of a group, all behind one lock.
struct Mailbox {
  explicit Mailbox(std::chrono::milliseconds limit) : timeout(limit) {}

  struct Letter {
    Envelope envelope;
    std::vector<std::byte> bytes;
  };
  /// All that goes from one rank to another, of collectives or from rank to rank.
  struct Line {
    std::vector<Letter> letters;
    std::size_t receives = 0;  ///< posted so far
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::chrono::milliseconds timeout;
  std::map<std::tuple<int, int, bool>, Line> lines;  // [from, to, from rank to rank]
  std::string broken;
};

class MailboxBackend : public Backend {
 public:
  MailboxBackend(Mailbox& mailbox, int rank) : mailbox_(mailbox), rank_(rank) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(mailbox_.mutex);
    Mailbox::Line& line = mailbox_.lines[{rank_, peer, envelope.from_rank_to_rank()}];
    const std::size_t number = line.letters.size();
    const std::byte* begin = static_cast<const std::byte*>(data);
    line.letters.push_back({envelope, std::vector<std::byte>(begin, begin + bytes)});
    return posted(
        peer, [&line, number] { return line.receives > number; }, [] {});
  }

  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(mailbox_.mutex);
    Mailbox::Line& line = mailbox_.lines[{peer, rank_, envelope.from_rank_to_rank()}];
    const std::size_t number = line.receives++;
    const auto take = [this, &line, number, envelope, peer, data, bytes] {
      const Mailbox::Letter& letter = line.letters[number];
      const auto sent = static_cast<std::int64_t>(letter.bytes.size());
      const std::string wrong = mismatch("memory", rank_, envelope, bytes, peer, letter.envelope, sent);
      if (!wrong.empty()) throw RunError(wrong);
      if (bytes > 0) std::memcpy(data, letter.bytes.data(), letter.bytes.size());
    };
    return posted(
        peer, [&line, number] { return line.letters.size() > number; }, take);
  }

  void close(const std::string& reason) override {
    const std::lock_guard<std::mutex> lock(mailbox_.mutex);
    if (mailbox_.broken.empty()) mailbox_.broken = reason;
    mailbox_.changed.notify_all();
  }

 private:
  struct Posted : PostedMessage {
    void wait(const WaitsFor& waits_for) override {
      std::unique_lock<std::mutex> lock(mailbox->mutex);
      if (!ready()) waits_for(peer);
      const auto awake = [this] { return ready() || !mailbox->broken.empty(); };
      if (!mailbox->changed.wait_for(lock, mailbox->timeout, awake)) {
        throw TimeoutError("rank " + std::to_string(peer) + " does not come");
      }
      if (!ready()) throw RunError(mailbox->broken);
      finish();
    }
    Mailbox* mailbox = nullptr;
    int peer = 0;
    std::function<bool()> ready;
    std::function<void()> finish;
  };

  std::unique_ptr<PostedMessage> posted(int peer, std::function<bool()> ready, std::function<void()> finish) {
    if (!mailbox_.broken.empty()) throw RunError(mailbox_.broken);
    mailbox_.changed.notify_all();
    auto message = std::make_unique<Posted>();
    message->mailbox = &mailbox_;
    message->peer = peer;
    message->ready = std::move(ready);
    message->finish = std::move(finish);
    return message;
  }

  Mailbox& mailbox_;
  int rank_;
};

}  // namespace muonwalk::testing
