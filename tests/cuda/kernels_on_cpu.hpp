#pragma once

// The kernels of src/cuda, compiled for the processor.

#include <cstddef>
#include <functional>
#include <vector>

/// A kernel: its name, the size of its one argument, and how it is run.
struct KernelOnCpu {
  const char* name;
  std::size_t argument_size;
  /// The addresses in an argument, so that they can be checked.
  std::vector<const void*> (*addresses)(const void* argument);
  /// Runs all blocks. `order` as in muonwalk_stand_in_thread_order. False where threads of a block wait at a barrier
  /// that others have passed by.
  bool (*run)(const void* argument, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned order);
};

/// Null where there is none of that name.
const KernelOnCpu* kernel_on_cpu(const char* name);
