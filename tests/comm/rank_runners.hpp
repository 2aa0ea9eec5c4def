#pragma once

// Runs one function on every rank of a group: fibers over memory, threads over Gloo, or real processes over Gloo. What
// a rank has to complain about it returns as a string; an exception counts as a complaint. doctest's checks stay in the
// caller, because a forked child has no way to report them.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/transport/gloo_device.hpp"
#include "sim/transport/key_store.hpp"
#include "sim/transport/memory_backend.hpp"
#include "src/comm/communicator.hpp"

namespace muonwalk::testing {

using RankFunction = std::function<std::string(Communicator&)>;
/// Puts something between a rank's communicator and its backend: how tests plant faults.
using Wrapper = std::function<std::unique_ptr<Backend>(int rank, Backend& inner)>;

constexpr std::chrono::milliseconds patient{20000};

/// Complaints by rank; empty strings where there are none.
std::vector<std::string> on_fibers(int size, const RankFunction& function, const Wrapper& wrapper = nullptr);

std::vector<std::string> on_gloo_threads(int size, const RankFunction& function,
                                         std::chrono::milliseconds timeout = patient);

/// How a child process ended.
struct ChildEnd {
  bool exited = false;  ///< by itself, with `code`
  int code = 0;
  int signal = 0;        ///< what killed it otherwise
  bool overdue = false;  ///< it was killed because the deadline had passed
  std::string complaint;
};

/// Forks `size` children that run `function(rank)` and end with _exit, 0 without a complaint and 1 with one. The parent
/// gets the complaints through shared memory (cut at 500 bytes) and kills what is left after `deadline`.
std::vector<ChildEnd> on_processes(int size, const std::function<std::string(int rank)>& function,
                                   std::chrono::milliseconds deadline = std::chrono::milliseconds(60000));

/// Connects the calling process as `rank` and runs the function.
std::string as_gloo_rank(int rank, int size, sim::KeyStore& store, const RankFunction& function,
                         std::chrono::milliseconds timeout = patient);

/// A number in memory that forked processes share, to wait for each other outside of what is tested.
class SharedCounter {
 public:
  SharedCounter();
  ~SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  void add();
  int value() const;
  /// Waits until the counter has reached `value`; false after 20 s.
  bool wait_for(int value) const;

 private:
  int* shared_;
};

/// Something to send: `count` ones.
Flat values(Index count);

/// The text of the RunError that the call ends with; empty when there is none.
std::string error_of(const std::function<void()>& call);

/// The complaints of all ranks in one string, for doctest's CHECK.
std::string joined(const std::vector<std::string>& complaints);
std::string joined(const std::vector<ChildEnd>& ends);

}  // namespace muonwalk::testing
