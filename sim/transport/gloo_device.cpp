#include <fcntl.h>
#include <gloo/config.h>
#if GLOO_HAVE_TRANSPORT_UV && !defined(__linux__)
#include <gloo/transport/uv/device.h>  // Gloo's tcp is for Linux only; this path has not been tried
#else
#include <gloo/transport/tcp/device.h>
#endif
#include <sched.h>
#ifdef __linux__
#include <sys/timerfd.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <initializer_list>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "sim/transport/gloo_device.hpp"
#include "sim/transport/gloo_mesh.hpp"
#include "sim/transport/lost_peer_watch.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;

#if GLOO_HAVE_TRANSPORT_UV && !defined(__linux__)
namespace socket_transport = gloo::transport::uv;
#else
namespace socket_transport = gloo::transport::tcp;
#endif

// Ranks of this process that are connecting. While there are any, Gloo reads what anybody sends who gets through to a
// port, and what it does not understand it throws on its own thread, which ends the process.
std::atomic<int> ranks_connecting{0};
std::atomic<GlooDevice::LastWords> last_words{nullptr};
std::terminate_handler usual_end = nullptr;

[[noreturn]] void end_of_process() {
  if (ranks_connecting > 0) {
    const char* const sentence =
        "a process that is not a rank connected while the ranks of this run were connecting, and what it sent or left "
        "ended Gloo; nothing was sent to it; end that process, or run where ranks get a network of their own";
    const GlooDevice::LastWords words = last_words;
    if (words != nullptr) words(sentence);
    std::fprintf(stderr, "%s\n", sentence);
    _exit(3);
  }
  if (usual_end != nullptr) usual_end();
  std::abort();
}

void hear_the_end() {
  static std::once_flag once;
  std::call_once(once, [] { usual_end = std::set_terminate(end_of_process); });
}

// What the system has run out of, and what would work; empty where it is something else. Where no port is free, the
// system says EADDRINUSE to whoever listens and EADDRNOTAVAIL to whoever connects; ranks of a group do both. To whoever
// only listens, the latter means another host's address.
std::string shortage(const std::exception& error, std::initializer_list<int> no_port) {
  if (no_more_files(error))
    return "too many files are open; allow more (ulimit -n), ask for fewer ranks, or give each a process of its own";
  const auto said = [&](int code) { return std::strstr(error.what(), std::strerror(code)) != nullptr; };
  if (std::any_of(no_port.begin(), no_port.end(), said))
    return "no port is free; ask for fewer ranks, or wait a minute until those of earlier runs are free again";
  return "";
}

// A group of one rank, which has nobody to talk to: its communicator never posts a message.
class GroupOfOne : public Backend {
 public:
  std::unique_ptr<PostedMessage> post_send(const Envelope&, int, const void*, std::int64_t) override { refuse(); }
  std::unique_ptr<PostedMessage> post_receive(const Envelope&, int, void*, std::int64_t) override { refuse(); }
  std::optional<std::int64_t> kernel_bytes_sent() const override { return 0; }
  void close(const std::string&) override {}

 private:
  [[noreturn]] static void refuse() {
    throw std::invalid_argument("a message was to be posted in a group of one rank, which has no peers");
  }
};

// While it lives, the calling thread is scheduled as SCHED_BATCH. Where that is refused everything works, only slower.
class BatchScope {
 public:
#if defined(SCHED_BATCH)
  BatchScope() : policy_(sched_getscheduler(0)) {
    if (policy_ < 0 || sched_getparam(0, &parameters_) != 0) return;
    const sched_param ordinary = {};
    changed_ = sched_setscheduler(0, SCHED_BATCH, &ordinary) == 0;
  }
  ~BatchScope() {
    if (changed_) sched_setscheduler(0, policy_, &parameters_);
  }

 private:
  int policy_ = 0;
  sched_param parameters_ = {};
  bool changed_ = false;
#endif
};

// Whenever a pair has found its peer, Gloo waits until its event loop has turned, which it does every 10 ms while
// nothing happens, pair after pair. When somebody begins to connect, a timer has it turn every millisecond, a thousand
// times: ranks that wait longer have to stand still, so that it is noticed.
#ifdef __linux__
class QuickTurns : public socket_transport::Handler {
 public:
  explicit QuickTurns(const std::shared_ptr<gloo::transport::Device>& device)
      : device_(std::static_pointer_cast<socket_transport::Device>(device)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (timer_ >= 0) device_->registerDescriptor(timer_, EPOLLIN, this);
  }
  // Only the loop's own thread can take a descriptor from it without waiting for a turn.
  ~QuickTurns() override {
    if (timer_ < 0) return;  // without files for one it is slower, and nothing else
    std::future<void> ended = ended_->get_future();
    ends_ = true;
    turn_quickly(true);
    ended.wait();
    close(timer_);
  }
  void begin() {
    turns_ = 0;
    if (++users_ == 1) turn_quickly(true);
  }
  void end() {
    if (--users_ == 0) turn_quickly(false);
  }

  void handleEvents(int) override {
    std::uint64_t times;
    if (read(timer_, &times, sizeof times) < 0) return;
    if (++turns_ == 1000) turn_quickly(false);
    if (!ends_) return;
    const auto ended = ended_;
    device_->unregisterDescriptor(timer_, this);
    ended->set_value();
  }

 private:
  void turn_quickly(bool quickly) {
    const timespec pause = {0, quickly ? 1'000'000 : 0};
    const itimerspec every = {pause, pause};
    timerfd_settime(timer_, 0, &every, nullptr);
  }

  std::shared_ptr<socket_transport::Device> device_;
  const int timer_;
  std::atomic<int> users_{0}, turns_{0};
  std::atomic<bool> ends_{false};
  std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();
};
#else
struct QuickTurns {
  explicit QuickTurns(const std::shared_ptr<gloo::transport::Device>&) {}
  void begin() {}
  void end() {}
};
#endif

class Connecting {
 public:
  explicit Connecting(QuickTurns& turns) : turns_(turns) {
    ++ranks_connecting;
    turns_.begin();
  }
  ~Connecting() {
    turns_.end();
    --ranks_connecting;
  }

 private:
  QuickTurns& turns_;
};

}  // namespace

struct GlooDevice::State {
  std::shared_ptr<gloo::transport::Device> device;
  std::unique_ptr<QuickTurns> turns;
  LostPeerWatch watch;  // of the waits of all groups
};

GlooDevice::GlooDevice(const std::string& address) : state_(std::make_shared<State>()) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    // The event loop's thread inherits the policy of this one.
    const BatchScope batch;
    state_->device = socket_transport::CreateDevice(socket_transport::attr(address.c_str()));
    state_->turns = std::make_unique<QuickTurns>(state_->device);
  } catch (const std::exception& error) {
    if (const std::string what = shortage(error, {EADDRINUSE}); !what.empty())
      throw RunError("Gloo can't be started: " + what);
    throw RunError("Gloo can't use the address " + address + " of this machine, or start a thread: " + error.what() +
                   "; see that the address answers (ping " + address +
                   "), or allow more threads (ulimit -u) or open files (ulimit -n)");
  }
}

GlooDevice::~GlooDevice() = default;

void GlooDevice::on_overrun(LastWords words) { last_words = words; }

std::size_t GlooDevice::board_keys(int size) {
  return std::size_t{4} * kMeshAttempts * static_cast<std::size_t>(std::max(size, 1));
}

std::size_t GlooDevice::board_value_bytes(int size) {
  return std::size_t{192} * static_cast<std::size_t>(std::max(size, 1)) + 64;
}

std::unique_ptr<Backend> GlooDevice::connect(const std::string& name, int rank, int size, KeyStore& store,
                                             milliseconds timeout, const Secret* secret) {
  if (size < 1 || rank < 0 || rank >= size)
    throw std::invalid_argument("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                                " was to be connected in group " + name + ", but ranks go from 0 to size − 1");
  if (size == 1) return std::make_unique<GroupOfOne>();
  hear_the_end();
  const Connecting connecting(*state_->turns);
  try {
    GlooMesh mesh =
        connect_mesh(state_->device, name, rank, size, store, secret != nullptr ? *secret : store.secret(), timeout);
    return over_mesh(name, rank, size, state_, state_->watch, std::move(mesh), timeout);
  } catch (const RunError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string what = shortage(error, {EADDRINUSE, EADDRNOTAVAIL});
    throw RunError("rank " + std::to_string(rank) + " can't connect to the other ranks of group " + name + ": " +
                   (what.empty() ? std::string("one of them has died or left (") + error.what() + ")" : what));
  }
}

}  // namespace muonwalk::sim
