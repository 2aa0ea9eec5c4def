#include "tests/comm/rank_runners.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "sim/fibers/fibers.hpp"
#include "src/errors.hpp"

namespace muonwalk::testing {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t complaint_bytes = 500;

void* shared_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return memory;
}

std::string complaint_of(const std::function<std::string()>& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
}

std::vector<std::string> on_threads(int size, const std::function<std::string(int rank)>& function) {
  std::vector<std::string> complaints(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&complaints, &function, rank] {
      complaints[static_cast<std::size_t>(rank)] = complaint_of([&] { return function(rank); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return complaints;
}

}  // namespace

std::vector<std::string> on_fibers(int size, const RankFunction& function, const Wrapper& wrapper) {
  sim::MemoryGroup group(size, "memory");
  std::vector<std::string> complaints(static_cast<std::size_t>(size));
  const auto on_rank = [&](int rank) {
    const std::unique_ptr<Backend> backend = group.backend(rank);
    const std::unique_ptr<Backend> wrapped = wrapper ? wrapper(rank, *backend) : nullptr;
    Ledger ledger;
    Communicator communicator("memory", rank, size, wrapped ? *wrapped : *backend, ledger);
    return function(communicator);
  };
  sim::run_fibers(
      size, [&](int rank) { complaints[static_cast<std::size_t>(rank)] = complaint_of([&] { return on_rank(rank); }); },
      {});
  return complaints;
}

std::vector<std::string> on_gloo_threads(int size, const RankFunction& function, std::chrono::milliseconds timeout) {
  sim::KeyStore store(sim::GlooDevice::board_keys(size), sim::GlooDevice::board_value_bytes(size));
  return on_threads(size, [&](int rank) { return as_gloo_rank(rank, size, store, function, timeout); });
}

std::string as_gloo_rank(int rank, int size, sim::KeyStore& store, const RankFunction& function,
                         std::chrono::milliseconds timeout) {
  sim::GlooDevice device;
  const std::unique_ptr<Backend> backend = device.connect("gloo", rank, size, store, timeout);
  Ledger ledger;
  Communicator communicator("gloo", rank, size, *backend, ledger);
  return function(communicator);
}

std::vector<ChildEnd> on_processes(int size, const std::function<std::string(int rank)>& function,
                                   std::chrono::milliseconds deadline) {
  const std::size_t count = static_cast<std::size_t>(size);
  char* complaints = static_cast<char*>(shared_memory(count * complaint_bytes));
  std::fflush(nullptr);  // or every child would hold a copy of what is not written yet
  std::vector<pid_t> children(count);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child < 0) {  // -1 in the list would mean every process of this user to `kill`
      for (int started = 0; started < rank; ++started) kill(children[static_cast<std::size_t>(started)], SIGKILL);
      for (int started = 0; started < rank; ++started) waitpid(children[static_cast<std::size_t>(started)], nullptr, 0);
      throw std::runtime_error("the system allows no further process");
    }
    children[static_cast<std::size_t>(rank)] = child;
    if (child > 0) continue;
    const std::string complaint = complaint_of([&] { return function(rank); });
    std::strncpy(complaints + static_cast<std::size_t>(rank) * complaint_bytes, complaint.c_str(), complaint_bytes - 1);
    _exit(complaint.empty() ? 0 : 1);
  }
  const Clock::time_point end = Clock::now() + deadline;
  std::vector<ChildEnd> ends(count);
  std::vector<bool> gone(count, false);
  for (std::size_t left = count; left > 0;) {
    for (std::size_t i = 0; i < count; ++i) {
      int status = 0;
      if (gone[i] || waitpid(children[i], &status, WNOHANG) == 0) continue;
      gone[i] = true;
      --left;
      ends[i].exited = WIFEXITED(status);
      ends[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      ends[i].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      ends[i].complaint = complaints + i * complaint_bytes;
    }
    if (Clock::now() > end) {
      for (std::size_t i = 0; i < count; ++i) {
        if (gone[i]) continue;
        ends[i].overdue = true;
        kill(children[i], SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (ends[i].overdue) ends[i].complaint = "still running at the deadline";
  }
  munmap(complaints, count * complaint_bytes);
  return ends;
}

SharedCounter::SharedCounter() : shared_(static_cast<int*>(shared_memory(sizeof(int)))) {}
SharedCounter::~SharedCounter() { munmap(shared_, sizeof(int)); }
void SharedCounter::add() { __atomic_add_fetch(shared_, 1, __ATOMIC_SEQ_CST); }
int SharedCounter::value() const { return __atomic_load_n(shared_, __ATOMIC_SEQ_CST); }

bool SharedCounter::wait_for(int value) const {
  for (int i = 0; i < 20000 && this->value() < value; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return this->value() >= value;
}

Flat values(Index count) { return Flat(static_cast<std::size_t>(count), 1.0f); }

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

std::string joined(const std::vector<std::string>& complaints) {
  std::string text;
  for (std::size_t rank = 0; rank < complaints.size(); ++rank) {
    if (!complaints[rank].empty()) text += "rank " + std::to_string(rank) + ": " + complaints[rank] + "\n";
  }
  return text;
}

std::string joined(const std::vector<ChildEnd>& ends) {
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const ChildEnd& end = ends[rank];
    if (end.exited && end.code == 0) continue;
    text += "rank " + std::to_string(rank) + ": ";
    text += end.exited ? "exit " + std::to_string(end.code) : "signal " + std::to_string(end.signal);
    text += " " + end.complaint + "\n";
  }
  return text;
}

}  // namespace muonwalk::testing
