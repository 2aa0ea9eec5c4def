#include "sim/transport/key_store.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t bells = 256;  // a power of two

// All of the key store starts as zeros, which is an empty entry. An entry is claimed by writing its hash (the one step
// that two ranks may compete for), filled, and then marked as written; from then on it never changes.
struct Entry {
  std::atomic<std::uint64_t> hash;     // stands for the key: of 10⁴ keys, two are alike once in 10¹¹ runs
  std::atomic<std::uint32_t> written;  // 0: it is empty, or its writer is not done
  std::uint32_t value_bytes;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "the board is shared by processes, so its atomics must not hide a lock");

// Never 0, which means "empty".
std::uint64_t hash_of(const std::string& key) { return std::max<std::uint64_t>(std::hash<std::string>()(key), 1); }

// Sleeps until the bell no longer shows `seen`, at most until the deadline. May return early.
void sleep_on(std::atomic<std::uint32_t>& bell, std::uint32_t seen, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
  if (left <= 0) return;
#if defined(__linux__)
  timespec limit = {};
  limit.tv_sec = static_cast<time_t>(left / 1000000000);
  limit.tv_nsec = static_cast<long>(left % 1000000000);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&bell), FUTEX_WAIT, seen, &limit, nullptr, 0);
#else
  if (bell.load() == seen) std::this_thread::sleep_for(std::chrono::microseconds(200));
#endif
}

void ring(std::atomic<std::uint32_t>& bell) {
  bell.fetch_add(1);
#if defined(__linux__)
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&bell), FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
#endif
}

}  // namespace

struct KeyStore::Shared {
  std::size_t entries;
  std::size_t value_bytes;
  Secret secret;
  // A waiting rank sleeps on the bell of its key's hash, so that a new key wakes only those who may want it.
  std::atomic<std::uint32_t> bell[bells];

  Entry* entry(std::size_t i) { return reinterpret_cast<Entry*>(this + 1) + i; }
  char* value(std::size_t i) { return reinterpret_cast<char*>(entry(entries)) + i * value_bytes; }
  std::atomic<std::uint32_t>& bell_of(std::uint64_t hash) { return bell[(hash >> 32) & (bells - 1)]; }

  // The entry of a key that was written; `entries` when there is none (yet).
  std::size_t find(std::uint64_t hash) {
    for (std::size_t probe = 0; probe < entries; ++probe) {
      const std::size_t i = (hash + probe) % entries;
      const std::uint64_t found = entry(i)->hash.load();
      if (found == hash && entry(i)->written.load(std::memory_order_acquire) != 0) return i;
      if (found == hash || found == 0) return entries;
    }
    return entries;
  }

  // Claims an entry for the key, which the caller then writes.
  std::size_t claim(std::uint64_t hash, const std::string& key) {
    for (std::size_t probe = 0; probe < entries; ++probe) {
      const std::size_t i = (hash + probe) % entries;
      std::uint64_t found = 0;
      if (entry(i)->hash.compare_exchange_strong(found, hash)) return i;
      if (found == hash)
        throw RunError("the key \"" + key +
                       "\" was to be written to the board a second time; every key is written once");
    }
    throw RunError("the key \"" + key + "\" does not fit on the board, which has room for " + std::to_string(entries) +
                   " keys; make the board larger");
  }
};

KeyStore::KeyStore(std::size_t entries, std::size_t value_bytes) {
  mapped_bytes_ = sizeof(Shared) + entries * (sizeof(Entry) + value_bytes);
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw RunError("a board of " + std::to_string(mapped_bytes_) + " bytes can't be mapped: " + std::strerror(errno));
  shared_ = static_cast<Shared*>(memory);
  shared_->entries = entries;
  shared_->value_bytes = value_bytes;
  try {
    shared_->secret = random_bytes();
  } catch (...) {
    munmap(shared_, mapped_bytes_);
    throw;
  }
}

KeyStore::~KeyStore() { munmap(shared_, mapped_bytes_); }

void KeyStore::set(const std::string& key, const std::vector<char>& value) {
  if (value.size() > shared_->value_bytes)
    throw RunError("the key \"" + key + "\" with a value of " + std::to_string(value.size()) +
                   " bytes does not fit on the board, which takes values of " + std::to_string(shared_->value_bytes) +
                   " bytes");
  const std::uint64_t hash = hash_of(key);
  const std::size_t mine = shared_->claim(hash, key);
  shared_->entry(mine)->value_bytes = static_cast<std::uint32_t>(value.size());
  std::copy(value.begin(), value.end(), shared_->value(mine));
  shared_->entry(mine)->written.store(1, std::memory_order_release);
  ring(shared_->bell_of(hash));
  if (told_) told_(key, value);
}

std::vector<char> KeyStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  const std::uint64_t hash = hash_of(key);
  std::atomic<std::uint32_t>& bell = shared_->bell_of(hash);
  for (;;) {
    // The bell is read before the entry is looked for: a key that comes in between ends the sleep at once.
    const std::uint32_t seen = bell.load();
    const std::size_t i = shared_->find(hash);
    if (i < shared_->entries) {
      const char* value = shared_->value(i);
      return std::vector<char>(value, value + shared_->entry(i)->value_bytes);
    }
    if (Clock::now() >= deadline)
      throw TimeoutError("the key \"" + key + "\" did not appear on the board within " +
                         std::to_string(timeout.count()) +
                         " ms; the rank that writes it has died, hangs, or was never started");
    sleep_on(bell, seen, deadline);
  }
}

const Secret& KeyStore::secret() const { return shared_->secret; }

void KeyStore::set_secret(const Secret& secret) { shared_->secret = secret; }

void KeyStore::on_set(std::function<void(const std::string& key, const std::vector<char>& value)> told) {
  told_ = std::move(told);
}

}  // namespace muonwalk::sim
