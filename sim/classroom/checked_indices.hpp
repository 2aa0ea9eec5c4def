#pragma once

// Comes before all else where a reader's code is compiled (cmake/exercises.cmake). There, an index that is out of range
// throws a sentence with the index, the size and the reader's line; with Clang, it is the last word of the rank.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "src/numerics/memory_meter.hpp"

namespace muonwalk::sim {
/// "your line 17", as addr2line says of where a call returns to, or "your code" where it says nothing.
inline std::string line_of(void* address) {
  Dl_info library = {};
  dladdr(address, &library);
  char command[4096];
  std::snprintf(command, sizeof command, "addr2line -e '%s' %tx 2>/dev/null", library.dli_fname,
                static_cast<char*>(address) - static_cast<char*>(library.dli_fbase) - 1);
  std::string place;
  if (FILE* pipe = popen(command, "r")) {
    while (std::fgets(command, sizeof command, pipe) != nullptr) place += command;
    pclose(pipe);
  }
  const int line = std::atoi(place.substr(place.rfind(':') + 1).c_str());
  return line > 0 ? "your line " + std::to_string(line) : "your code";
}

// The index, or the place of (row, col), if there is such an element.
inline std::int64_t checked(std::int64_t index, std::int64_t size, void* address) {
  if (index >= 0 && index < size) return index;
  throw std::out_of_range(line_of(address) + " asks for element " + std::to_string(index) + " of an array of " +
                          std::to_string(size) + "; counting begins with 0");
}
inline std::int64_t checked(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols, void* address) {
  if (row >= 0 && row < rows && col >= 0 && col < cols) return row * cols + col;
  throw std::out_of_range(line_of(address) + " asks for element (" + std::to_string(row) + ", " + std::to_string(col) +
                          ") of a matrix of " + std::to_string(rows) + " × " + std::to_string(cols) +
                          "; counting begins with 0");
}
}  // namespace muonwalk::sim
// Functions of the reader's own library that are called: where they return to, there is a line of the reader's.
#define MUONWALK_CHECKED __attribute__((noinline, visibility("hidden")))
#define MUONWALK_PLACE(...) muonwalk::sim::checked(__VA_ARGS__, __builtin_return_address(0))
#ifdef __clang__
#define MUONWALK_NOTHROW noexcept
#else
#define MUONWALK_NOTHROW
#endif
#define MUONWALK_CHECK(Array, Element, constant)                                                    \
  template <>                                                                                       \
  MUONWALK_CHECKED inline Array::Element Array::operator[](size_type n) constant MUONWALK_NOTHROW { \
    return data()[MUONWALK_PLACE(static_cast<std::int64_t>(n), static_cast<std::int64_t>(size()))]; \
  }
#define MUONWALK_CHECK_ARRAY(Array) MUONWALK_CHECK(Array, reference, ) MUONWALK_CHECK(Array, const_reference, const)
MUONWALK_CHECK_ARRAY(muonwalk::Flat)
MUONWALK_CHECK_ARRAY(std::vector<muonwalk::Flat>)
MUONWALK_CHECK_ARRAY(std::vector<int>)
MUONWALK_CHECK_ARRAY(std::vector<double>)
MUONWALK_CHECK_ARRAY(std::vector<std::int64_t>)
MUONWALK_CHECK_ARRAY(std::vector<std::vector<std::int64_t>>)
