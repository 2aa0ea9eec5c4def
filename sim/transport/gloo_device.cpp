#include <fcntl.h>
#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#if GLOO_HAVE_TRANSPORT_UV && !defined(__linux__)
#include <gloo/transport/uv/device.h>  // Gloo's tcp is for Linux only; this path has not been tried
#else
#include <gloo/transport/tcp/device.h>
#endif
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/transport/gloo_backend.hpp"
#include "sim/transport/gloo_device.hpp"
#include "sim/transport/tcp_counters.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

namespace {

using std::chrono::milliseconds;

#if GLOO_HAVE_TRANSPORT_UV && !defined(__linux__)
namespace socket_transport = gloo::transport::uv;
#else
namespace socket_transport = gloo::transport::tcp;
#endif

// How many devices live in this process. With more than one, its ranks are threads that share the kernel's view.
std::atomic<int> devices_alive{0};

}  // namespace

int gloo_devices_alive() { return devices_alive; }

struct GlooDevice::State {
  State() { ++devices_alive; }
  ~State() { --devices_alive; }
  std::shared_ptr<gloo::transport::Device> device;
};

namespace {

// Gloo does not always say that it was files that ran out, so the system is asked as well.
bool no_more_files(const std::exception& error) {
  if (std::strstr(error.what(), std::strerror(EMFILE)) != nullptr) return true;
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file >= 0) ::close(file);
  return file < 0 && (errno == EMFILE || errno == ENFILE);
}
constexpr const char* kMoreFiles = "allow more (ulimit -n), ask for fewer ranks, or give each a process of its own";

// Gloo's idea of a notice board, on ours and with our timeout: one deadline covers all that is read while a group
// connects (Gloo's own stores wait up to 30 s for a rank that does not come, whatever is set).
class BoardStore : public gloo::rendezvous::Store {
 public:
  // The keys of `group` on the board, which must outlive the store; the deadline is `timeout` from now.
  BoardStore(Board& board, std::string group, std::chrono::milliseconds timeout)
      : board_(board),
        group_(std::move(group)),
        timeout_(timeout),
        deadline_(std::chrono::steady_clock::now() + timeout) {}

  // Pins `value` on the board.
  void set(const std::string& key, const std::vector<char>& value) override { board_.set(full(key), value); }

  // The value of a key, as soon as it is there. Throws RunError when it is not there in time.
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

  // Returns when all keys are there. The timeout that Gloo hands over is not the one that holds.
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  std::string full(const std::string& key) const { return group_ + "/" + key; }

  Board& board_;
  std::string group_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
};

// A group of one rank, which has nobody to talk to: its communicator never posts a message.
class GroupOfOne : public Backend {
 public:
  std::unique_ptr<PostedMessage> post_send(const Envelope&, int, const void*, std::int64_t) override { refuse(); }
  std::unique_ptr<PostedMessage> post_receive(const Envelope&, int, void*, std::int64_t) override { refuse(); }
  KernelTraffic kernel_traffic() const override { return {true, 0, 0}; }
  void close(const std::string&) override {}

 private:
  [[noreturn]] static void refuse() {
    throw std::invalid_argument("a message was to be posted in a group of one rank, which has no peers");
  }
};

// Gloo's own limit while two ranks connect. Debian's version multiplies it by five.
milliseconds connect_limit(milliseconds timeout) {
#ifdef GLOO_SHARED_STORE
  return timeout;
#else
  return std::max(timeout / 5, milliseconds(1));
#endif
}

void connect_full_mesh(gloo::rendezvous::Context& context, const std::shared_ptr<BoardStore>& store,
                       std::shared_ptr<gloo::transport::Device>& device) {
#ifdef GLOO_SHARED_STORE
  context.connectFullMesh(store, device);
#else
  context.connectFullMesh(*store, device);
#endif
}

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

}  // namespace

GlooDevice::GlooDevice() : state_(std::make_shared<State>()) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    // The event loop's thread inherits the policy of this one.
    const BatchScope batch;
    state_->device = socket_transport::CreateDevice(socket_transport::attr("127.0.0.1"));
  } catch (const std::exception& error) {
    if (no_more_files(error))
      throw RunError(std::string("Gloo can't be started: too many files are open; ") + kMoreFiles);
    throw RunError(std::string("Gloo can't use the address 127.0.0.1 of this machine, or start a thread: ") +
                   error.what() +
                   "; see that the address answers (ping 127.0.0.1), or allow more threads (ulimit -u) or open files "
                   "(ulimit -n)");
  }
}

GlooDevice::~GlooDevice() = default;

std::size_t GlooDevice::board_keys(int size) { return std::size_t{4} * static_cast<std::size_t>(std::max(size, 1)); }

std::size_t GlooDevice::board_value_bytes(int size) {
  return std::size_t{192} * static_cast<std::size_t>(std::max(size, 1)) + 64;
}

std::unique_ptr<Backend> GlooDevice::connect(const std::string& name, int rank, int size, Board& board,
                                             milliseconds timeout) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw std::invalid_argument("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                                " was to be connected in group " + name + ", but ranks go from 0 to size − 1");
  }
  if (size == 1) return std::make_unique<GroupOfOne>();
  const std::vector<TcpSocket> before = connected_tcp_sockets();
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(connect_limit(timeout));
  try {
    connect_full_mesh(*context, std::make_shared<BoardStore>(board, name, timeout), state_->device);
  } catch (const RunError&) {
    throw;
  } catch (const std::exception& error) {
    throw RunError("rank " + std::to_string(rank) + " can't connect to the other ranks of group " + name + ": " +
                   (no_more_files(error) ? std::string("too many files are open; ") + kMoreFiles
                                         : std::string("one of them has died or left (") + error.what() + ")"));
  }
  std::vector<TcpSocket> sockets;
  for (const TcpSocket& socket : connected_tcp_sockets()) {
    const auto same = [&](const TcpSocket& old) { return old.inode == socket.inode; };
    if (std::none_of(before.begin(), before.end(), same)) sockets.push_back(socket);
  }
  return over_connected_context(name, rank, size, state_, std::move(context), std::move(sockets), timeout);
}

}  // namespace muonwalk::sim
