#include "src/numerics/memory_meter.hpp"

#include <cstdio>
#include <limits>
#include <new>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace muonwalk {

namespace {

constexpr std::align_val_t alignment{64};  // a cache line, and the widest vector register

thread_local MemoryMeter* current_meter = nullptr;

// Every optimizer step asks for matrices of the same sizes again. Left to itself, the C library returns megabytes to
// the system when they are freed, and the next step pays for new pages: two to three percent of Newton–Schulz at 676 ×
// 876, and of a step of a model whose activations are a quarter of a gigabyte.
bool keep_freed_pages() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  return true;
}

[[maybe_unused]] const bool pages_are_kept = keep_freed_pages();

}  // namespace

MemoryMeter* MemoryMeter::current() { return current_meter; }
MemoryMeter* MemoryMeter::exchange(MemoryMeter* meter) { return std::exchange(current_meter, meter); }

namespace {

// Says how much was asked for: "400000000 elements of 4 bytes". Its text needs no memory.
class OutOfMemory : public std::bad_alloc {
 public:
  OutOfMemory(std::size_t elements, std::size_t element_size) {
    std::snprintf(text_, sizeof text_, "%zu elements of %zu bytes", elements, element_size);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[80];
};

}  // namespace

MeterScope::MeterScope(MemoryMeter& meter) : previous_(MemoryMeter::exchange(&meter)) {}

MeterScope::~MeterScope() { MemoryMeter::exchange(previous_); }

void* metered_allocate(std::size_t elements, std::size_t element_size) {
  if (elements > std::numeric_limits<std::size_t>::max() / 2 / element_size) throw OutOfMemory(elements, element_size);
  void* memory = ::operator new(elements* element_size, alignment, std::nothrow);
  if (memory == nullptr) throw OutOfMemory(elements, element_size);
  if (current_meter)
    current_meter->add(static_cast<std::int64_t>(elements), static_cast<std::int64_t>(elements * element_size));
  return memory;
}

void metered_free(void* memory, std::size_t elements, std::size_t element_size) noexcept {
  if (!memory) return;
  if (current_meter)
    current_meter->remove(static_cast<std::int64_t>(elements), static_cast<std::int64_t>(elements * element_size));
  ::operator delete(memory, alignment);
}

}  // namespace muonwalk
