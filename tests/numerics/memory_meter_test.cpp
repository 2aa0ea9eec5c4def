// The memory that matrices and flat buffers lie in: where it lies, what is refused, and that it is given back.
#include "src/numerics/memory_meter.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

using namespace muonwalk;

namespace {

std::string refused_memory(std::size_t elements, std::size_t element_size) {
  try {
    metered_free(metered_allocate(elements, element_size), elements, element_size);
  } catch (const std::bad_alloc& error) {
    return error.what();
  }
  return "(it was given)";
}

}  // namespace

TEST_CASE("metered_allocate: every size lies at a multiple of 64 bytes, and all of it can be written") {
  std::vector<void*> held;
  for (std::size_t elements = 0; elements < 200; ++elements) {
    held.push_back(metered_allocate(elements, 4));
    CHECK(reinterpret_cast<std::uintptr_t>(held.back()) % 64 == 0);
    std::memset(held.back(), static_cast<int>(elements), 4 * elements);
  }
  for (std::size_t elements = 0; elements < held.size(); ++elements) {
    const unsigned char* const bytes = static_cast<const unsigned char*>(held[elements]);
    for (std::size_t i = 0; i < 4 * elements; ++i) REQUIRE(bytes[i] == elements);
    metered_free(held[elements], elements, 4);
  }
}

TEST_CASE("metered_allocate: what is refused is said in elements and bytes, and not counted") {
  MemoryMeter meter;
  const MeterScope scope(meter);
  CHECK(refused_memory(std::size_t{1} << 60, 4) == "1152921504606846976 elements of 4 bytes");
  CHECK(refused_memory(std::size_t{1} << 61, 2) == "2305843009213693952 elements of 2 bytes");
  // As bytes these are 0, 8 and 0 more than 64 bits hold.
  CHECK(refused_memory(std::size_t{1} << 62, 4) == "4611686018427387904 elements of 4 bytes");
  CHECK(refused_memory((std::size_t{1} << 62) + 2, 4) == "4611686018427387906 elements of 4 bytes");
  CHECK(refused_memory(std::size_t{1} << 63, 2) == "9223372036854775808 elements of 2 bytes");
  CHECK(refused_memory(3, 4) == "(it was given)");
  CHECK(meter.live() == 0);
  CHECK(meter.live_bytes() == 0);
  CHECK(meter.peak() == 3);
  CHECK(meter.peak_bytes() == 12);
}

TEST_CASE("MemoryMeter: elements and bytes have peaks of their own, each started anew alone") {
  MemoryMeter meter;
  meter.add(10, 80);
  meter.remove(10, 80);
  meter.add(20, 40);  // the most elements, and not the most bytes
  CHECK(meter.live() == 20);
  CHECK(meter.live_bytes() == 40);
  CHECK(meter.peak() == 20);
  CHECK(meter.peak_bytes() == 80);
  meter.remove(5, 10);
  meter.restart_peak();
  CHECK(meter.peak() == 15);
  CHECK(meter.peak_bytes() == 80);
  meter.add(3, 6);
  meter.remove(4, 8);
  meter.restart_peak_bytes();
  CHECK(meter.peak() == 18);
  CHECK(meter.peak_bytes() == 28);
  CHECK(meter.live() == 14);
  CHECK(meter.live_bytes() == 28);
}

TEST_CASE("MeteredAllocator: memory of one is another's: a buffer that moves is neither copied nor counted twice") {
  CHECK(MeteredAllocator<float>() == MeteredAllocator<float>());
  CHECK_FALSE(MeteredAllocator<float>() != MeteredAllocator<float>());
  MemoryMeter meter;
  const MeterScope scope(meter);
  Flat from(100, 1.5f), to(3);
  const float* const where = from.data();
  meter.restart_peak();
  to = std::move(from);
  CHECK(to.data() == where);
  CHECK(meter.peak() == 103);
  CHECK(meter.live() == 100);
}
