// The kernels' own source, compiled for the processor, and what runs a block's threads on it.
//
// A thread is a fiber: it runs until it waits for the others in __syncthreads, then the next one does. What is right
// only if the threads happen to run at the same time goes wrong here, in one order of the threads or in another; and so
// does what reads shared memory that nobody has written, because it is full of NaNs when a block begins.

#include "tests/cuda/kernels_on_cpu.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

// --- what CUDA's compiler has, in the words of this one
// ----------------------------------------------------------------------

#define __global__ __attribute__((visibility("hidden")))
#define __device__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
// All shared memory lies in one section of the program, so that it can be overwritten before a block begins.
#define __shared__ static __attribute__((section("kernel_shared_memory")))

extern "C" char __start_kernel_shared_memory[], __stop_kernel_shared_memory[];

namespace {

struct Numbers3 {
  unsigned x, y, z;
};
Numbers3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
  float x, y, z, w;
};
float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
float __fmul_rn(float x, float y) { return x * y; }
float __fadd_rn(float x, float y) { return x + y; }
float __fsub_rn(float x, float y) { return x - y; }
double __dmul_rn(double x, double y) { return x * y; }
double __dadd_rn(double x, double y) { return x + y; }
double __ddiv_rn(double x, double y) { return x / y; }
float __double2float_rn(double x) { return static_cast<float>(x); }
unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
using ::fabsf;
using std::copysignf;
using std::fabs;
using std::sqrt;

enum class Waits { no, plainly, for_a_vote };

// Gives the processor to the other threads of the block until all of them have come here.
void wait_for_all(Waits how);
bool vote;

void __syncthreads() { wait_for_all(Waits::plainly); }
int __syncthreads_or(int mine);

}  // namespace

#include "src/cuda/kernels.cu"

namespace {

// --- fibers
// -----------------------------------------------------------------------------------------------------------------

constexpr std::size_t stack_bytes = 64 << 10;

struct Fiber {
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  jmp_buf place;
  Waits waits = Waits::no;
  bool started = false, done = false;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Numbers3> indices;
  std::size_t running = 0;
  jmp_buf scheduler;
  std::function<void()> thread;
  bool any_vote = false;
};
Block block;

void wait_for_all(Waits how) {
  Fiber& fiber = block.fibers[block.running];
  fiber.waits = how;
  if (_setjmp(fiber.place) == 0) _longjmp(block.scheduler, 1);
}

int __syncthreads_or(int mine) {
  if (mine) block.any_vote = true;
  wait_for_all(Waits::for_a_vote);
  return vote ? 1 : 0;
}

// A fiber lives through many blocks: one thread of each.
void live() {
  for (;;) {
    block.thread();
    Fiber& fiber = block.fibers[block.running];
    fiber.done = true;
    if (_setjmp(fiber.place) == 0) _longjmp(block.scheduler, 1);
  }
}

// Runs thread number `index` until it waits or ends. Only the first start needs a call into the system.
void go_on_with(std::size_t index) {
  block.running = index;
  Fiber& fiber = block.fibers[index];
  fiber.waits = Waits::no;
  threadIdx = block.indices[index];
  if (_setjmp(block.scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.place, 1);
  fiber.started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  setcontext(&context);
}

// False where some threads wait for others that are gone, or that wait elsewhere.
bool run_block(std::size_t threads, unsigned order, std::uint32_t& random) {
  std::memset(__start_kernel_shared_memory, 0xff,
              static_cast<std::size_t>(__stop_kernel_shared_memory - __start_kernel_shared_memory));
  for (std::size_t i = 0; i < threads; ++i) block.fibers[i].done = false;
  std::vector<std::size_t> sequence(threads);
  std::iota(sequence.begin(), sequence.end(), std::size_t{0});
  if (order == 1) std::reverse(sequence.begin(), sequence.end());
  block.any_vote = false;
  for (;;) {
    if (order > 1) {
      for (std::size_t i = threads; i > 1; --i) {
        random = random * 1664525u + 1013904223u;
        std::swap(sequence[i - 1], sequence[(random >> 8) % i]);
      }
    }
    for (const std::size_t index : sequence) go_on_with(index);
    const Waits waits = block.fibers[0].waits;
    for (std::size_t i = 0; i < threads; ++i)
      if (block.fibers[i].waits != waits) return false;
    vote = block.any_vote;
    block.any_vote = false;
    if (waits == Waits::no) return true;
  }
}

}  // namespace

bool run_blocks(const BoundKernel& kernel, const unsigned (&grid)[3], const unsigned (&threads)[3], unsigned order) {
  const std::size_t count = std::size_t{threads[0]} * threads[1] * threads[2];
  if (block.fibers.size() < count) block.fibers = std::vector<Fiber>(count);
  block.indices.clear();
  for (unsigned z = 0; z < threads[2]; ++z)
    for (unsigned y = 0; y < threads[1]; ++y)
      for (unsigned x = 0; x < threads[0]; ++x) block.indices.push_back({x, y, z});
  block.thread = kernel.thread;
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {threads[0], threads[1], threads[2]};
  std::uint32_t random = order;
  for (unsigned z = 0; z < grid[2]; ++z)
    for (unsigned y = 0; y < grid[1]; ++y)
      for (unsigned x = 0; x < grid[0]; ++x) {
        blockIdx = {x, y, z};
        if (!run_block(count, order, random)) {
          block.fibers.clear();  // some are in the middle of a kernel
          return false;
        }
      }
  return true;
}

// --- the kernels
// ------------------------------------------------------------------------------------------------------------

namespace {

using Addresses = std::vector<const void*>;

template <class T>
Addresses addresses_in(const T& argument) {
  if constexpr (std::is_pointer_v<T>) return {argument};
  return {};
}
Addresses addresses_in(const ProductArguments& a) { return {a.left, a.right, a.addend, a.out}; }
Addresses addresses_in(const TreeSumParts& a) { return Addresses(a.part, a.part + a.parts); }

template <auto kernel, class... Parameters, std::size_t... i>
BoundKernel bound(void (*)(Parameters...), void** arguments, std::index_sequence<i...>) {
  const std::tuple<Parameters...> all{*static_cast<const Parameters*>(arguments[i])...};
  Addresses addresses;
  for (const Addresses& some : {addresses_in(std::get<i>(all))...})
    addresses.insert(addresses.end(), some.begin(), some.end());
  return {addresses, [all] { std::apply(kernel, all); }};
}

template <class... Parameters>
constexpr std::index_sequence_for<Parameters...> numbers_of(void (*)(Parameters...)) {
  return {};
}

}  // namespace

const KernelOnCpu* kernel_on_cpu(const char* name) {
#define KERNEL(name)                                                                                        \
  {#name, [](void** arguments) {                                                                            \
     return bound<muonwalk::cuda::name>(muonwalk::cuda::name, arguments, numbers_of(muonwalk::cuda::name)); \
   }},
  static const KernelOnCpu kernels[] = {MUONWALK_KERNELS(KERNEL)};
#undef KERNEL
  for (const KernelOnCpu& kernel : kernels)
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  return nullptr;
}
