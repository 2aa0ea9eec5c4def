#pragma once

// Private to gloo_device.cpp: it includes Gloo, which only the gloo_* files do.

#include <gloo/rendezvous/store.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "sim/transport/board.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

/// Gloo's idea of a notice board, on ours and with our timeout: one deadline covers all that is read while a group
/// connects (Gloo's own stores wait up to 30 s for a rank that does not come, whatever is set).
class BoardStore : public gloo::rendezvous::Store {
 public:
  /// The keys of `group` on the board, which must outlive the store; the deadline is `timeout` from now.
  BoardStore(Board& board, std::string group, std::chrono::milliseconds timeout)
      : board_(board),
        group_(std::move(group)),
        timeout_(timeout),
        deadline_(std::chrono::steady_clock::now() + timeout) {}

  /// Pins `value` on the board.
  void set(const std::string& key, const std::vector<char>& value) override { board_.set(full(key), value); }

  /// The value of a key, as soon as it is there. Throws RunError when it is not there in time.
  std::vector<char> get(const std::string& key) override {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    try {
      return board_.get(full(key), std::max(left, std::chrono::milliseconds(0)));
    } catch (const RunError&) {
      // Gloo's keys are "3" (an address) and "rank_3" (a host name).
      const std::string rank = key.substr(std::min(key.find_first_of("0123456789"), key.size()));
      throw RunError("the group " + group_ + " can't be connected: its rank " + rank + " did not come within " +
                     std::to_string(timeout_.count()) + " ms; it has died, hangs, or was never started");
    }
  }

  /// Returns when all keys are there. The timeout that Gloo hands over is not the one that holds.
  /// @{
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }
  /// @}

 private:
  std::string full(const std::string& key) const { return group_ + "/" + key; }

  Board& board_;
  std::string group_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace muonwalk::sim
