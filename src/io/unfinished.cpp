#include "src/io/unfinished.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace muonwalk {

// A list that only grows and of which nothing is freed, so that a handler can go through it at any moment.
struct Unfinished {
  std::string path;
  bool folder;
  std::atomic<pid_t> owner;  // 0: forgotten
  Unfinished* before;        // those that were remembered earlier: folders stand behind what is in them
};

namespace {

std::atomic<Unfinished*> last{nullptr};

template <std::size_t bytes>
void hold(const sigset_t& signals, unsigned char (&before)[bytes]) {
  static_assert(sizeof(sigset_t) <= bytes);
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &signals, &previous);
  std::memcpy(before, &previous, sizeof previous);
}

}  // namespace

Unfinished* remember_unfinished(const std::string& path, bool folder) {
  static const bool at_exit = std::atexit(remove_unfinished) == 0;
  static_cast<void>(at_exit);  // without it, signals are still taken care of
  auto* one = new Unfinished{path, folder, {getpid()}, last.load()};
  while (!last.compare_exchange_weak(one->before, one)) {
  }
  return one;
}

void forget_unfinished(Unfinished* one) {
  if (one != nullptr) one->owner = 0;
}

void remove_unfinished() {
  const int before = errno;  // a handler leaves it as it was
  const pid_t self = getpid();
  for (Unfinished* one = last; one != nullptr; one = one->before) {
    pid_t owner = self;
    if (!one->owner.compare_exchange_strong(owner, 0)) continue;
    if (one->folder)
      rmdir(one->path.c_str());  // fails where something is in it, as it should
    else
      unlink(one->path.c_str());
  }
  errno = before;
}

bool is_unfinished_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t end = std::strlen(kUnfinishedEnd);
  return name.rfind(kUnfinishedBegin, 0) == 0 && name.size() >= end &&
         name.compare(name.size() - end, end, kUnfinishedEnd) == 0;
}

SignalHold::SignalHold() {
  sigset_t all;
  sigfillset(&all);
  hold(all, previous_);
}

SignalHold::SignalHold(std::initializer_list<int> signals) {
  sigset_t some;
  sigemptyset(&some);
  for (int number : signals) sigaddset(&some, number);
  hold(some, previous_);
}

SignalHold::~SignalHold() {
  sigset_t previous;
  std::memcpy(&previous, previous_, sizeof previous);
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

}  // namespace muonwalk
