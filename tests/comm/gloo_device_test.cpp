// What a rank's Gloo device does to its process, and how it connects: who is refused, who is blamed, and what is said
// at the end.

#include "sim/transport/gloo_device.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sim/fibers/fibers.hpp"
#include "sim/transport/tcp_sockets.hpp"
#include "src/errors.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;
using std::chrono::milliseconds;

namespace {

sim::KeyStore board_of(int size) {
  return sim::KeyStore(sim::GlooDevice::board_keys(size), sim::GlooDevice::board_value_bytes(size));
}

// A barrier that nobody leaves before all are out of the group's own: who closes then interrupts no call.
class AllOut {
 public:
  void pass(Communicator& c) {
    c.barrier();
    ++out_;
    while (out_ < c.size())
      if (sim::fiber::inside())
        sim::fiber::sleep_until(sim::fiber::clock_ns() + 1000000);
      else
        std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  std::atomic<int> out_{0};
};

// What each rank's connect says, all of them at once.
std::vector<std::string> errors_of_connecting(const std::vector<int>& ranks, int size, sim::KeyStore& store,
                                              milliseconds timeout) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      sim::GlooDevice device;
      try {
        device.connect("trio", ranks[i], size, store, timeout);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace

#if defined(__linux__)

namespace {

std::set<pid_t> threads_of_this_process() {
  std::set<pid_t> threads;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.') threads.insert(std::atoi(entry->d_name));
  closedir(folder);
  return threads;
}

}  // namespace

TEST_CASE("a device's thread is scheduled as SCHED_BATCH, and no thread that was there before is") {
  std::thread([] {
    const sched_param none{};
    if (sched_setscheduler(0, SCHED_BATCH, &none) != 0 || sched_setscheduler(0, SCHED_OTHER, &none) != 0) {
      MESSAGE("left out: this system lets a thread have no other scheduling policy");
      return;
    }
    const std::set<pid_t> before = threads_of_this_process();
    const sim::GlooDevice device;
    int added = 0;
    for (const pid_t thread : threads_of_this_process()) {
      const bool its_own = before.count(thread) == 0;
      CHECK(sched_getscheduler(thread) == (its_own ? SCHED_BATCH : SCHED_OTHER));
      added += its_own ? 1 : 0;
    }
    CHECK(added == 1);
  }).join();
}

#endif

TEST_CASE("a process with a device ignores SIGPIPE: a peer that is gone does not end it") {
  const auto run = [](int) -> std::string {
    signal(SIGPIPE, SIG_DFL);
    const sim::GlooDevice device;
    return signal(SIGPIPE, SIG_DFL) == SIG_IGN ? "" : "SIGPIPE would end the process";
  };
  CHECK(joined(on_processes(1, run)) == "");
}

TEST_CASE("an address that this machine does not have: a sentence that names it and says what may help") {
  const std::string error = error_of([] { sim::GlooDevice device("192.0.2.77"); });
  CAPTURE(error);
  CHECK(error.find("Gloo can't use the address 192.0.2.77 of this machine, or start a thread: ") == 0);
  CHECK(error.find("; see that the address answers (ping 192.0.2.77), or allow more threads (ulimit -u) or open files "
                   "(ulimit -n)") != std::string::npos);
}

TEST_CASE("connect: a number that no rank of the group has is refused, in a sentence, before anything is opened") {
  sim::GlooDevice device;
  sim::KeyStore store = board_of(3);
  struct Numbers {
    int rank, size;
  };
  for (const Numbers& wrong : std::vector<Numbers>{{-1, 2}, {2, 2}, {7, 3}, {0, 0}, {0, -4}, {-1, 1}, {1, 1}}) {
    const std::string sentence = fmt::format(
        "rank {} of {} was to be connected in group some, but ranks go from 0 to size − 1", wrong.rank, wrong.size);
    CHECK_THROWS_WITH_AS(device.connect("some", wrong.rank, wrong.size, store, milliseconds(100)), sentence.c_str(),
                         std::invalid_argument);
  }
}

TEST_CASE("a group of one over Gloo: knows that nothing was sent, and refuses every message") {
  sim::GlooDevice device;
  sim::KeyStore store(1, 8);  // nothing is written to it
  const std::unique_ptr<Backend> alone = device.connect("one", 0, 1, store, milliseconds(100));
  CHECK(alone->kernel_bytes_sent() == 0);
  CHECK(alone->header_bytes_sent() == 0);
  float number = 0;
  const char* sentence = "a message was to be posted in a group of one rank, which has no peers";
  CHECK_THROWS_WITH_AS(alone->post_send({}, 0, &number, 4), sentence, std::invalid_argument);
  CHECK_THROWS_WITH_AS(alone->post_receive({}, 0, &number, 4), sentence, std::invalid_argument);
  alone->close("it has been closed");
  CHECK(alone->kernel_bytes_sent() == 0);
}

TEST_CASE("connect: whoever has not come is named, and not one of those that have") {
  for (int missing = 0; missing < 3; ++missing) {
    sim::KeyStore store = board_of(3);
    const std::vector<int> there = {missing == 0 ? 1 : 0, missing == 2 ? 1 : 2};
    for (const std::string& error : errors_of_connecting(there, 3, store, milliseconds(150)))
      CHECK(error ==
            fmt::format("the group trio can't be connected: its rank {} did not come within 150 ms; it has died, "
                        "hangs, or was never started",
                        missing));
  }
}

namespace {

// Connects to the port that one rank of a group of `size` has opened for another, as soon as both have said where
// theirs are; that of the one which listens, or that of the one which is going to connect.
class Intruder {
 public:
  Intruder(sim::KeyStore& store, int a, int b, int size, bool at_listener) {
    store.on_set([=](const std::string& key, const std::vector<char>& value) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (key.find("/address/") == std::string::npos) return;
      const int rank = key.back() - '0';
      if (rank != a && rank != b) return;
      // A rank has no port for itself, so those for later ranks come one place earlier.
      const int peer = rank == a ? b : a;
      const auto bytes = static_cast<std::ptrdiff_t>(value.size()) / (size - 1);
      const auto at = value.begin() + bytes * (peer > rank ? peer - 1 : peer);
      (rank == a ? of_a_ : of_b_).assign(at, at + bytes);
      if (of_a_.empty() || of_b_.empty()) return;
      const bool a_listens = !sim::connects_to(of_a_, of_b_);
      listener = a_listens ? a : b;
      if (attempts++ < most) {
        ends_.push_back(socket(AF_INET, SOCK_STREAM, 0));
        const std::vector<char>& to = a_listens == at_listener ? of_a_ : of_b_;
        connect(ends_.back(), reinterpret_cast<const sockaddr*>(to.data()), sizeof(sockaddr_in));
        if (!says.empty()) {
          send(ends_.back(), says.data(), says.size(), MSG_NOSIGNAL);
          std::this_thread::sleep_for(milliseconds(50));  // Gloo reads it
        }
      }
      of_a_.clear();
      of_b_.clear();
    });
  }
  ~Intruder() {
    for (const int end : ends_) close(end);
  }

  int most = 1000;  // it comes no more often
  std::string says;
  int attempts = 0, listener = -1;

 private:
  std::mutex mutex_;
  std::vector<char> of_a_, of_b_;
  std::vector<int> ends_;
};

}  // namespace

TEST_CASE(
    "a stranger in place of one of three ranks: all say between whom it is, after the eighth time and not before") {
  for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 0}}) {
    sim::KeyStore store = board_of(3);
    Intruder intruder(store, a, b, 3, true);
    const std::vector<std::string> errors = errors_of_connecting({0, 1, 2}, 3, store, patient);
    const std::string sentence = fmt::format(
        "a process that is not a rank is connected to rank {} of group trio in place of rank {}, the last of 8 times "
        "that "
        "the ranks tried to connect; nothing of the run was sent to it; end that process, or run where ranks get a "
        "network of their own",
        intruder.listener, a + b - intruder.listener);
    for (const std::string& error : errors) CHECK(error == sentence);
    CHECK(intruder.attempts == 8);
  }
}

TEST_CASE("a stranger that comes seven times and no more: the eighth time the ranks are connected") {
  sim::KeyStore store = board_of(3);
  Intruder intruder(store, 0, 2, 3, true);
  intruder.most = 7;
  CHECK(joined(errors_of_connecting({0, 1, 2}, 3, store, patient)) == "");
  CHECK(intruder.attempts == 8);
}

TEST_CASE("a stranger that a rank sees and whose peer then leaves: the time that is over is not blamed on the peer") {
  sim::KeyStore store = board_of(2);
  std::atomic<bool> again{false};
  std::mutex mutex;
  std::vector<std::vector<char>> opened;
  std::vector<int> strangers;
  store.on_set([&](const std::string& key, const std::vector<char>& value) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (key == "trio/2/address/1") throw std::runtime_error("it leaves");
    if (key.find("/address/") == std::string::npos) return;
    opened.push_back(value);
    if (opened.size() != 2) return;
    const std::vector<char>& listener = sim::connects_to(opened[0], opened[1]) ? opened[1] : opened[0];
    strangers.push_back(socket(AF_INET, SOCK_STREAM, 0));
    connect(strangers.back(), reinterpret_cast<const sockaddr*>(listener.data()), sizeof(sockaddr_in));
  });
  const std::vector<std::string> errors = errors_of_connecting({0, 1}, 2, store, milliseconds(700));
  for (const int stranger : strangers) close(stranger);
  CHECK(errors[0] ==
        "a process that is not a rank got between the ranks of group trio, and they could not connect anew within 700 "
        "ms; "
        "nothing of the run was sent to it; end that process, or run where ranks get a network of their own");
  CHECK(errors[1].find("it leaves") != std::string::npos);
}

TEST_CASE("what a stranger says at the port of a rank that is going to connect is not taken for the peer's words") {
  const auto run = [](int) -> std::string {
    sim::KeyStore store = board_of(2);
    Intruder intruder(store, 0, 1, 2, false);
    intruder.most = 1;
    intruder.says = std::string(16, '\0');  // less than Gloo reads before it looks
    std::string complaints[2];
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&, rank] {
        try {
          complaints[rank] = as_gloo_rank(
              rank, 2, store,
              [](Communicator& c) -> std::string { return c.all_reduce(Flat{3}) == Flat{6} ? "" : "another sum"; },
              milliseconds(4000));
        } catch (const std::exception& error) {
          complaints[rank] = error.what();
        }
      });
    for (std::thread& rank : ranks) rank.join();
    if (intruder.attempts != 2) return "they connected " + std::to_string(intruder.attempts) + " times";
    return complaints[0] + complaints[1];
  };
  CHECK(joined(on_processes(1, run)) == "");
}

TEST_CASE("a rank that waits for another: that a third one has left does not end its wait") {
  // Gloo's own word and a look at the socket decide who is lost; the socket has to be the one of the peer.
  std::vector<std::thread> groups;
  std::vector<std::string> complaints(6);
  std::size_t next = 0;
  for (int waits = 0; waits < 3; ++waits)
    for (int leaves = 0; leaves < 3; ++leaves) {
      if (leaves == waits) continue;
      groups.emplace_back([&complaints, waits, leaves, slot = next++] {
        const int sends = 3 - waits - leaves;
        std::atomic<bool> looked{false};
        AllOut all;
        complaints[slot] = joined(on_gloo_threads(3, [&](Communicator& c) -> std::string {
          all.pass(c);
          if (c.rank() == leaves) return "";
          Flat memory = values(3);
          if (c.rank() == waits) {
            std::thread patience([&] {
              std::this_thread::sleep_for(milliseconds(450));  // some looks long
              looked = true;
            });
            std::string error = error_of([&] { c.recv(memory.data(), 3, sends); });
            patience.join();
            return error;
          }
          while (!looked) std::this_thread::sleep_for(milliseconds(1));
          return error_of([&] { c.send(memory.data(), 3, waits); });
        }));
      });
    }
  for (std::thread& group : groups) group.join();
  CHECK(joined(complaints) == "");
}

TEST_CASE("who waits is told for whom, over Gloo and over memory; over memory only where the message is not there") {
  const auto run = [](Communicator& c) -> std::string {
    c.barrier();
    float number = static_cast<float>(c.rank());
    const Envelope send{CollectiveKind::send, ElementType::float32, 0, 0},
        recv{CollectiveKind::recv, ElementType::float32, 0, 0};
    const int from = (c.rank() + 2) % 3, to = (c.rank() + 1) % 3;
    float got = -1;
    const auto sent = c.backend().post_send(send, to, &number, 4);
    const auto received = c.backend().post_receive(recv, from, &got, 4);
    std::set<int> told_of_receive, told_of_send;
    received->wait([&](int peer) { told_of_receive.insert(peer); });
    sent->wait([&](int peer) { told_of_send.insert(peer); });
    if (got != static_cast<float>(from)) return "another number came";
    for (const int peer : told_of_receive)
      if (peer != from) return "told to wait for " + std::to_string(peer) + " of a receive";
    for (const int peer : told_of_send)
      if (peer != to) return "told to wait for " + std::to_string(peer) + " of a send";
    const bool gloo = c.group() == "gloo";
    if (gloo && (told_of_receive.empty() || told_of_send.empty())) return "not told";
    // Once more, when both ends have been posted: over memory there is nothing to wait for.
    const auto again = c.backend().post_send(send, to, &number, 4);
    const auto second = c.backend().post_receive(recv, from, &got, 4);
    c.barrier();
    bool told = false;
    second->wait([&](int) { told = true; });
    again->wait([&](int) { told = true; });
    return told == gloo ? "" : "told, or not told, in vain";
  };
  CHECK(joined(on_gloo_threads(3, run)) == "");
  CHECK(joined(on_fibers(3, run)) == "");
}

TEST_CASE(
    "a backend that is closed: every later call gives the first reason, and its peers are told of a rank that left") {
  AllOut over_gloo, over_memory;
  const auto run = [&](Communicator& c) -> std::string {
    (c.group() == "gloo" ? over_gloo : over_memory).pass(c);
    float number = 0;
    const Envelope send{CollectiveKind::send, ElementType::float32, 0, 0},
        recv{CollectiveKind::recv, ElementType::float32, 0, 0};
    if (c.rank() == 1) {
      c.backend().close("the first reason");
      c.backend().close("the second");
      for (const auto& call :
           std::vector<std::function<void()>>{[&] { c.backend().post_send(send, 0, &number, 4); },
                                              [&] { c.backend().post_receive(recv, 0, &number, 4); }})
        if (error_of(call) != "the first reason") return "error: " + error_of(call);
      return "";
    }
    const std::string error = error_of([&] {
      const auto waits = c.backend().post_receive(recv, 1, &number, 4);
      waits->wait([](int) {});
    });
    const std::string expected = c.group() == "memory"
                                     ? "the first reason"
                                     : "the connection to rank 1 of group gloo was closed while rank " +
                                           std::to_string(c.rank()) + " was in recv: the rank has died or left";
    return error == expected ? "" : "error: " + error;
  };
  CHECK(joined(on_gloo_threads(3, run)) == "");
  CHECK(joined(on_fibers(3, run)) == "");
}

TEST_CASE("a message that was posted before its backend was closed: waiting for it gives the reason") {
  AllOut over_gloo, over_memory;
  const auto run = [&](Communicator& c) -> std::string {
    (c.group() == "gloo" ? over_gloo : over_memory).pass(c);
    if (c.rank() == 1) return "";
    float number = 0;
    const auto posted = c.backend().post_receive({CollectiveKind::recv, ElementType::float32, 0, 0}, 1, &number, 4);
    c.backend().close("it has been closed");
    const std::string error = error_of([&] { posted->wait([](int) {}); });
    return error == "it has been closed" ? "" : "error: " + error;
  };
  CHECK(joined(on_gloo_threads(2, run)) == "");
  CHECK(joined(on_fibers(2, run)) == "");
}

TEST_CASE("the kernel's count of a group whose rank has left: the sentence says that it can't be told any more") {
  AllOut over_gloo, over_memory;
  const auto run = [&](Communicator& c) -> std::string {
    (c.group() == "gloo" ? over_gloo : over_memory).pass(c);
    if (c.rank() == 1) return "";
    for (int turn = 0; turn < 20000; ++turn) {
      try {
        c.backend().kernel_bytes_sent();
      } catch (const PeerLostError& error) {
        const std::string expected =
            "what the kernel has sent in group gloo can't be counted any more: a connection is closed, the rank at its "
            "other end has died or left";
        return error.what() == expected ? "" : error.what();
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    return "still counted";
  };
  CHECK(joined(on_gloo_threads(3, run)) == "");
}

namespace {

struct LastWords {
  int code = 0, signal = 0;
  std::string error_output;
};

// How a child process ends in which `work` runs, and what it writes to standard error.
LastWords end_of_child(const std::function<void()>& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    work();
    _exit(99);
  }
  close(ends[1]);
  LastWords words;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(ends[0], bytes, sizeof bytes)) > 0;)
    words.error_output.append(bytes, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  words.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  words.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return words;
}

// Ends the process as Gloo does, while a rank connects and waits for another.
void be_ended_while_connecting() {
  sim::KeyStore store = board_of(2);
  store.on_set([](const std::string&, const std::vector<char>&) { std::terminate(); });
  sim::GlooDevice device;
  device.connect("pair", 0, 2, store, milliseconds(10000));
}

constexpr char kEndOfGloo[] =
    "a process that is not a rank connected while the ranks of this run were connecting, and what it sent or left "
    "ended Gloo; nothing was sent to it; end that process, or run where ranks get a network of their own";

}  // namespace

TEST_CASE("a process that Gloo ends while its ranks connect says why, in its own last words where it has some") {
  const LastWords without = end_of_child(be_ended_while_connecting);
  CHECK(without.error_output == std::string(kEndOfGloo) + "\n");
  CHECK(without.code == 3);
  const LastWords with = end_of_child([] {
    sim::GlooDevice::on_overrun([](const char* sentence) {
      std::fprintf(stderr, "last words: %s\n", sentence);
      _exit(17);
    });
    be_ended_while_connecting();
  });
  CHECK(with.error_output == std::string("last words: ") + kEndOfGloo + "\n");
  CHECK(with.code == 17);
  const LastWords taken_back = end_of_child([] {
    sim::GlooDevice::on_overrun([](const char*) { _exit(17); });
    sim::GlooDevice::on_overrun(nullptr);
    be_ended_while_connecting();
  });
  CHECK(taken_back.code == 3);
}
