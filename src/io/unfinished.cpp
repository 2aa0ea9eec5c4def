#include "src/io/unfinished.hpp"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "src/text/text.hpp"

namespace muonwalk {

struct Unfinished {
  std::atomic<pid_t> owner;  // 0: free; less than 0: this process is writing it down, or removing it
  bool folder;
};

namespace {

constexpr std::size_t kMost = 1024;  // at a time, of a process and all that it has forked

// In memory that a process shares with those that it forks, so that whoever ends one of them can remove what that one
// had begun. Nothing in it moves, so that the handler of a signal can go through it at any moment.
struct Table {
  Unfinished entries[kMost];  // files from the front, folders from the back: they stand behind what is in them
  char paths[kMost][PATH_MAX];
};

Table* const table = [] {
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Table*>(memory);  // zeros
}();

}  // namespace

Unfinished* remember_unfinished(const std::string& path, bool folder) {
  static const bool at_exit = std::atexit(remove_unfinished) == 0;
  static_cast<void>(at_exit);  // without it, signals are still taken care of
  const pid_t self = getpid();
  for (std::size_t i = 0; table != nullptr && path.size() < PATH_MAX && i < kMost; ++i) {
    const std::size_t place = folder ? kMost - 1 - i : i;
    Unfinished& entry = table->entries[place];
    if (pid_t nobody = 0; !entry.owner.compare_exchange_strong(nobody, -self)) continue;
    entry.folder = folder;
    std::strcpy(table->paths[place], path.c_str());
    entry.owner = self;
    return &entry;
  }
  return nullptr;
}

void forget_unfinished(Unfinished* one) {
  // A process that was forked has copies of what its parent has begun.
  if (pid_t self = getpid(); one != nullptr) one->owner.compare_exchange_strong(self, 0);
}

void remove_unfinished_of(pid_t process) {
  const int before = errno;  // a handler leaves it as it was
  for (std::size_t i = 0; table != nullptr && i < kMost; ++i) {
    Unfinished& entry = table->entries[i];
    if (pid_t owner = process; !entry.owner.compare_exchange_strong(owner, -process)) continue;
    if (entry.folder)
      rmdir(table->paths[i]);  // fails where something is in it, as it should
    else
      unlink(table->paths[i]);
    entry.owner = 0;
  }
  errno = before;
}

void remove_unfinished() { remove_unfinished_of(getpid()); }

bool is_unfinished_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return name.rfind(kUnfinishedBegin, 0) == 0 && ends_with(name, kUnfinishedEnd);
}

SignalHold::SignalHold() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &previous_);
}

SignalHold::SignalHold(std::initializer_list<int> signals) {
  sigset_t some;
  sigemptyset(&some);
  for (int number : signals) sigaddset(&some, number);
  pthread_sigmask(SIG_BLOCK, &some, &previous_);
}

SignalHold::~SignalHold() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

}  // namespace muonwalk
