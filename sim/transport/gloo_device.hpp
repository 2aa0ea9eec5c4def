#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "sim/transport/key_store.hpp"
#include "src/comm/backend.hpp"

namespace muonwalk::sim {

/// One rank's Gloo device: its event loop and the one address that it listens on.
class GlooDevice {
 public:
  /// Starts the event loop. Ports are opened at `address`, a numeric one of this host, and at no other. Must not be
  /// called before the last fork. The event loop's thread is scheduled as SCHED_BATCH: it no longer interrupts a rank
  /// that computes for every message, which makes a barrier between more ranks than cores about ten times faster. The
  /// calling thread keeps its policy; with both as SCHED_BATCH a busy machine lets a rank wait for a whole tick of 4 ms
  /// now and then. The process ignores SIGPIPE from here on: a peer that is gone is an error of the call and not the
  /// end of the process.
  explicit GlooDevice(const std::string& address = "127.0.0.1");
  ~GlooDevice();
  GlooDevice(const GlooDevice&) = delete;
  GlooDevice& operator=(const GlooDevice&) = delete;

  /// Connects this rank to the others of a group. `name` is unique among the groups of the run ("dp 1"); the addresses
  /// are exchanged through `key store`, which needs board_keys(size) keys of board_value_bytes(size) for each group.
  /// Before it returns, both ends of every connection have proven that they know `secret` (the key store's, where none
  /// is given), and nothing else has been sent. Throws RunError when a rank has not come after `timeout`, which is also
  /// the limit of every later wait for a message; PeerLostError when the key store was given up; StrangerError when a
  /// process that is not a rank gets in between again and again, or does not know the secret. With size 1 nothing is
  /// opened. The backend keeps the device alive.
  ///
  /// Its kernel traffic is that of the group's sockets. Asking for it waits up to 100 ms for bytes that Gloo has not
  /// handed to the kernel yet. What was sent is exact once the peers have received everything.
  std::unique_ptr<Backend> connect(const std::string& name, int rank, int size, KeyStore& store,
                                   std::chrono::milliseconds timeout, const Secret* secret = nullptr);

  /// What a process does with its last words when Gloo ends it because of what a stranger sent while ranks were
  /// connecting: it is called on a thread of Gloo's and must not return. Without one, the words go to standard error
  /// and the process exits with 3.
  using LastWords = void (*)(const char* sentence);
  /// Sets them for this process; null for none.
  static void on_overrun(LastWords words);

  /// How many keys connecting a group of `size` ranks writes to the key store, at most.
  static std::size_t board_keys(int size);
  /// The longest value among them, in bytes.
  static std::size_t board_value_bytes(int size);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muonwalk::sim
