#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/transport/secret.hpp"

namespace muonwalk::sim {

/// The key store on which ranks find each other: a small map from keys to bytes in memory that is mapped before the
/// fork and shared by all ranks, be they processes or threads. Every key is written once and read by many. It needs no
/// file and no socket, and it is gone when the last process is. It takes no lock, so a rank that dies in the middle of
/// writing leaves a key that never comes, and nobody else blocked.
class KeyStore {
 public:
  /// Room for `entries` keys, with values of at most `value_bytes` bytes. Only what is used costs memory, so the limits
  /// may be generous. Throws RunError when the memory can't be mapped.
  KeyStore(std::size_t entries, std::size_t value_bytes);
  ~KeyStore();
  KeyStore(const KeyStore&) = delete;
  KeyStore& operator=(const KeyStore&) = delete;

  /// Writes a value. Throws RunError when the key is known, the key store is full, or the value too long.
  void set(const std::string& key, const std::vector<char>& value);

  /// Waits for the key. Throws TimeoutError, naming the key, when it has not come after `timeout`.
  std::vector<char> get(const std::string& key, std::chrono::milliseconds timeout);

  /// The secret of the run, made with the key store.
  const Secret& secret() const;
  /// Another one: that of a run whose ranks have several key stores, one per host or process. Before anybody reads it.
  void set_secret(const Secret& secret);

  /// Calls `told` in this process after each value that it writes: for a key store that is one of several.
  void on_set(std::function<void(const std::string& key, const std::vector<char>& value)> told);

 private:
  struct Shared;
  Shared* shared_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::function<void(const std::string& key, const std::vector<char>& value)> told_;
};

}  // namespace muonwalk::sim
