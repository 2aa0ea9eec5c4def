#include "src/cuda/newton_schulz_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "src/numerics/newton_schulz_steps.hpp"

namespace muonwalk::cuda {
namespace {

// The Frobenius norm of the memory's X. The host needs it: it decides whether there is anything to iterate on.
double norm_of(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory) {
  kernels.sum_of_squares(stream, memory.x.data(), memory.x.size(), memory.sum.data());
  double sum = 0;
  copy_to_host(stream, &sum, static_cast<const double*>(memory.sum.data()), 1);
  return std::sqrt(sum);
}

[[noreturn]] void refuse(const Stream& stream, const NewtonSchulzMemory& memory, bool after_rounding,
                         const std::string& parameter) {
  Matrix wide(memory.m, memory.n);
  copy_to_host(stream, wide.data(), memory.x.data(), wide.size());
  refuse_what_is_not_finite(wide, memory.tall, after_rounding, parameter);
}

// squares_of_norm() and divide_by_norm() of newton_schulz.cpp.
void normalize(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory, Precision precision,
               const std::string& parameter) {
  const Index count = memory.m * memory.n;
  double norm = norm_of(kernels, stream, memory);
  if (!std::isfinite(norm)) refuse(stream, memory, false, parameter);
  if (precision == Precision::bf16) {
    kernels.scale_to_bf16(stream, 1, memory.x.data(), count, memory.x.data());
    norm = norm_of(kernels, stream, memory);
    if (!std::isfinite(norm)) refuse(stream, memory, true, parameter);
  }
  kernels.divide(stream, memory.x.data(), count, newton_schulz_denominator(norm, precision), precision);
}

// chain_gram() and chain_update() of newton_schulz_chain.cpp.
void chain_step(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory,
                const NewtonSchulzSettings& settings) {
  const Index m = memory.m, n = memory.n;

  ChainProduct square;  // A = X Xᵀ
  square.rows = square.cols = m;
  square.depth = n;
  square.left = square.right = memory.x.data();
  square.right_transposed = true;
  square.symmetric = true;
  square.out = memory.a.data();
  square.precision = settings.precision;
  kernels.product(stream, square);

  ChainProduct polynomial;  // B = b A + (c A) A
  polynomial.rows = polynomial.cols = polynomial.depth = m;
  polynomial.left = polynomial.right = polynomial.addend = memory.a.data();
  polynomial.addend_scale = settings.quintic.b;
  polynomial.out = memory.b.data();
  polynomial.precision = settings.precision;
  if (settings.precision == Precision::bf16) {
    kernels.scale_to_bf16(stream, settings.quintic.c, memory.a.data(), m * m, memory.scaled.data());
    polynomial.left = memory.scaled.data();
  } else {
    polynomial.left_scale = settings.quintic.c;
    polynomial.symmetric = true;
  }
  kernels.product(stream, polynomial);

  ChainProduct update;  // X ← a X + B X
  update.rows = update.depth = m;
  update.cols = n;
  update.left = memory.b.data();
  update.right = update.addend = memory.x.data();
  update.addend_scale = settings.quintic.a;
  update.out = memory.next.data();
  update.precision = settings.precision;
  kernels.product(stream, update);
  std::swap(memory.x, memory.next);
}

// One step in cuBLAS's words. The sums begin with what the result is a multiple of: so that is copied there first.
template <class T>
void cublas_step(const Cublas& cublas, const Stream& stream, Index m, Index n, const Quintic& q, DeviceArray<T>& x,
                 DeviceArray<T>& a, DeviceArray<T>& b, DeviceArray<T>& next) {
  const T *const from_x = x.data(), *const from_a = a.data();
  cublas.product(stream, m, m, n, 1, from_x, from_x, true, 0, a.data());
  copy(stream, b.data(), from_a, m * m);
  cublas.product(stream, m, m, m, q.c, from_a, from_a, false, q.b, b.data());
  copy(stream, next.data(), from_x, m * n);
  cublas.product(stream, m, n, m, 1, static_cast<const T*>(b.data()), from_x, false, q.a, next.data());
  std::swap(x, next);
}

void iterate_with_cublas(const Cublas& cublas, const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory,
                         const NewtonSchulzSettings& settings) {
  const Index m = memory.m, n = memory.n;
  if (settings.precision == Precision::fp32) {
    for (int step = 0; step < settings.steps; ++step)
      cublas_step(cublas, stream, m, n, settings.quintic, memory.x, memory.a, memory.b, memory.next);
    return;
  }
  kernels.to_bf16(stream, memory.x.data(), m * n, memory.narrow_x.data());
  for (int step = 0; step < settings.steps; ++step)
    cublas_step(cublas, stream, m, n, settings.quintic, memory.narrow_x, memory.narrow_a, memory.narrow_b,
                memory.narrow_next);
  kernels.from_bf16(stream, memory.narrow_x.data(), m * n, memory.x.data());
}

// From the caller's place on the device into the memory's X, wide, and back.
void take(const Kernels& kernels, const Stream& stream, const float* x, NewtonSchulzMemory& memory) {
  if (memory.tall)
    kernels.transpose(stream, x, memory.rows, memory.cols, memory.x.data());
  else
    copy(stream, memory.x.data(), x, memory.x.size());
}
void give(const Kernels& kernels, const Stream& stream, const NewtonSchulzMemory& memory, float* out) {
  if (memory.tall)
    kernels.transpose(stream, memory.x.data(), memory.m, memory.n, out);
  else
    copy(stream, out, memory.x.data(), memory.x.size());
  stream.wait();
}

void require_for(const NewtonSchulzMemory& memory, Engine engine, const NewtonSchulzSettings& settings) {
  if (memory.engine != engine || memory.precision != settings.precision)
    throw std::invalid_argument("Newton–Schulz was given memory for another engine or precision; make it for this one");
}

// At its end nothing of the stream is under way: the caller's matrix may go then, also after an error.
struct Drained {
  const Stream& stream;
  ~Drained() { stream.drain(); }
};

Matrix on_device(const Kernels& kernels, const Stream& stream, const Matrix& x, const NewtonSchulzSettings& settings,
                 const std::string& parameter) {
  MemoryMeter* const meter = MemoryMeter::current();
  NewtonSchulzMemory memory(kernels.device(), x.rows(), x.cols(), settings.precision, Engine::chain, meter);
  const Drained before_x_goes{stream};
  // A tall matrix is turned on the device, through the memory that the next X will take.
  copy(stream, (memory.tall ? memory.next : memory.x).data(), x.data(), x.size());
  if (memory.tall) kernels.transpose(stream, memory.next.data(), x.rows(), x.cols(), memory.x.data());
  normalize(kernels, stream, memory, settings.precision, parameter);
  for (int step = 0; step < settings.steps; ++step) chain_step(kernels, stream, memory, settings);
  DeviceArray<float>& result = memory.tall ? memory.next : memory.x;
  if (memory.tall) kernels.transpose(stream, memory.x.data(), memory.m, memory.n, result.data());
  stream.wait();
  // What the host is given takes the place of what is no longer needed: so as much is held as on a CPU.
  (memory.tall ? memory.x : memory.next) = {};
  Matrix out(x.rows(), x.cols());
  copy_to_host(stream, out.data(), static_cast<const float*>(result.data()), out.size());
  return out;
}

}  // namespace

NewtonSchulzMemory::NewtonSchulzMemory(const Device& device, Index its_rows, Index its_cols, Precision its_precision,
                                       Engine its_engine, MemoryMeter* meter)
    : rows(its_rows),
      cols(its_cols),
      precision(its_precision),
      engine(its_engine),
      tall(rows > cols),
      m(std::min(rows, cols)),
      n(std::max(rows, cols)),
      x(device, m * n, meter),
      sum(device, Kernels::sum_of_squares_room(m * n)) {
  if (engine == Engine::cublas && precision == Precision::bf16) {
    narrow_x = {device, m * n, meter};
    narrow_next = {device, m * n, meter};
    narrow_a = {device, m * m, meter};
    narrow_b = {device, m * m, meter};
    return;
  }
  next = {device, m * n, meter};
  a = {device, m * m, meter};
  b = {device, m * m, meter};
  if (precision == Precision::bf16) scaled = {device, m * m, meter};
}

void newton_schulz_chain(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory, const float* x,
                         const NewtonSchulzSettings& settings, float* out, const std::string& parameter) {
  require_for(memory, Engine::chain, settings);
  take(kernels, stream, x, memory);
  normalize(kernels, stream, memory, settings.precision, parameter);
  for (int step = 0; step < settings.steps; ++step) chain_step(kernels, stream, memory, settings);
  give(kernels, stream, memory, out);
}

void newton_schulz_cublas(const Cublas& cublas, const Kernels& kernels, const Stream& stream,
                          NewtonSchulzMemory& memory, const float* x, const NewtonSchulzSettings& settings, float* out,
                          const std::string& parameter) {
  require_for(memory, Engine::cublas, settings);
  take(kernels, stream, x, memory);
  normalize(kernels, stream, memory, settings.precision, parameter);
  iterate_with_cublas(cublas, kernels, stream, memory, settings);
  give(kernels, stream, memory, out);
}

ChainEngine chain_engine(const Device& device) {
  struct OnDevice {
    explicit OnDevice(const Device& its_device) : kernels(its_device), stream(its_device) {}
    Kernels kernels;
    Stream stream;
  };
  return [engine = std::make_shared<const OnDevice>(device)](const Matrix& x, const NewtonSchulzSettings& settings,
                                                             const std::string& parameter) {
    return on_device(engine->kernels, engine->stream, x, settings, parameter);
  };
}

}  // namespace muonwalk::cuda
