#include "sim/transport/lost_peer_watch.hpp"

#include <gloo/common/error.h>

#include <algorithm>
#include <system_error>

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks(100);

bool wait_in_gloo(gloo::transport::UnboundBuffer& buffer, LostPeerWatch::End end, milliseconds timeout) {
  return end == LostPeerWatch::End::sent ? buffer.waitSend(timeout) : buffer.waitRecv(timeout);
}

}  // namespace

struct LostPeerWatch::Wait {
  gloo::transport::UnboundBuffer* buffer;
  End end;
  const TcpSocket* socket;
  int looks_closed;  // how many looks in a row have found it closed
};

LostPeerWatch::~LostPeerWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool LostPeerWatch::wait(gloo::transport::UnboundBuffer& buffer, End end, const TcpSocket& socket,
                         milliseconds timeout) {
  Wait wait{&buffer, end, &socket, 0};
  if (socket.descriptor >= 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!thread_.joinable() && !no_thread_) try {
        thread_ = std::thread([this] { look(); });
      } catch (const std::system_error&) {
        no_thread_ = true;
      }
    waits_.push_back(&wait);
  }
  const auto leave = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (socket.descriptor < 0) return;
    waits_.erase(std::find(waits_.begin(), waits_.end(), &wait));
  };
  bool done = false;
  try {
    done = wait_in_gloo(buffer, end, timeout);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  if (done) return true;
  // The watch has ended the wait. A message that was done just before counts as done.
  try {
    return wait_in_gloo(buffer, end, milliseconds(1));
  } catch (const gloo::IoException&) {
    return false;
  }
}

void LostPeerWatch::look() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    changed_.wait_for(lock, kBetweenLooks);
    for (Wait* wait : waits_) {
      wait->looks_closed = bytes_sent(*wait->socket) ? 0 : wait->looks_closed + 1;
      // From the first look to the second one Gloo has time to tell by itself.
      if (wait->looks_closed != 2) continue;
      if (wait->end == End::sent)
        wait->buffer->abortWaitSend();
      else
        wait->buffer->abortWaitRecv();
    }
  }
}

}  // namespace muonwalk::sim
