#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muonwalk {

/// Counts the elements that one rank's matrices and flat buffers hold now, and the most they ever held; and the same in
/// bytes. It is how a lesson shows "peak elements on a rank" as a counted number and not as an opinion.
class MemoryMeter {
 public:
  void add(std::int64_t elements, std::int64_t bytes) {
    live_ += elements;
    live_bytes_ += bytes;
    if (live_ > peak_) peak_ = live_;
    if (live_bytes_ > peak_bytes_) peak_bytes_ = live_bytes_;
  }
  void remove(std::int64_t elements, std::int64_t bytes) {
    live_ -= elements;
    live_bytes_ -= bytes;
  }

  std::int64_t live() const { return live_; }
  /// The most elements held at one time since the start or the last `restart_peak`.
  std::int64_t peak() const { return peak_; }
  /// Forgets the peak: counting starts again from what is held now.
  void restart_peak() { peak_ = live_; }

  /// What is held in bytes, with a peak that is forgotten by itself: so a step can be looked at phase by phase while
  /// the elements are counted to its end.
  /// @{
  std::int64_t live_bytes() const { return live_bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  void restart_peak_bytes() { peak_bytes_ = live_bytes_; }
  /// @}

  /// The meter of the calling thread; null where nobody counts.
  static MemoryMeter* current();
  /// Lets `meter` count for the calling thread from here on (null: nobody), and returns the one that did.
  static MemoryMeter* exchange(MemoryMeter* meter);

 private:
  friend class MeterScope;
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

/// While it lives, what the calling thread allocates and frees is counted by `meter`.
class MeterScope {
 public:
  /// `meter` must outlive the scope. Scopes nest: the inner one counts, and at its end the outer one does again.
  explicit MeterScope(MemoryMeter& meter);
  ~MeterScope();
  MeterScope(const MeterScope&) = delete;
  MeterScope& operator=(const MeterScope&) = delete;

 private:
  MemoryMeter* previous_;
};

/// Memory aligned to 64 bytes, counted by the calling thread's MemoryMeter. Throws std::bad_alloc.
void* metered_allocate(std::size_t elements, std::size_t element_size);
/// Frees what metered_allocate gave for as many elements of that size.
void metered_free(void* memory, std::size_t elements, std::size_t element_size) noexcept;

/// The allocator behind Flat and Matrix.
template <class T>
struct MeteredAllocator {
  /// What the standard asks of an allocator. All of them are equal: memory of one can be freed by any other.
  /// @{
  using value_type = T;
  MeteredAllocator() = default;
  template <class U>
  MeteredAllocator(const MeteredAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(metered_allocate(n, sizeof(T))); }
  void deallocate(T* memory, std::size_t n) noexcept { metered_free(memory, n, sizeof(T)); }
  friend bool operator==(const MeteredAllocator&, const MeteredAllocator&) { return true; }
  friend bool operator!=(const MeteredAllocator&, const MeteredAllocator&) { return false; }
  /// @}
};

/// A flat buffer of elements, for example a DP shard or a bucket.
template <class T>
using FlatOf = std::vector<T, MeteredAllocator<T>>;
/// A flat buffer of float32, the type in which everything is computed.
using Flat = FlatOf<float>;

}  // namespace muonwalk
