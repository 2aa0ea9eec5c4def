#pragma once

// The kernels of src/cuda, compiled for the processor.

#include <cstddef>
#include <functional>
#include <vector>

/// A kernel with the arguments of a launch.
struct BoundKernel {
  /// The addresses among its arguments, so that they can be checked.
  std::vector<const void*> addresses;
  /// What each thread does.
  std::function<void()> thread;
};

/// A kernel: its name, and what a launch makes of it, which copies the arguments.
struct KernelOnCpu {
  const char* name;
  BoundKernel (*bind)(void** arguments);
};

/// Runs all blocks. `order` as in muonwalk_stand_in_thread_order. False where threads of a block wait at a barrier that
/// others have passed by.
bool run_blocks(const BoundKernel& kernel, const unsigned (&grid)[3], const unsigned (&threads)[3], unsigned order);

/// Null where there is none of that name.
const KernelOnCpu* kernel_on_cpu(const char* name);
