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

// chain_code of newton_schulz_chain.cpp.
void chain_step(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory,
                const NewtonSchulzSettings& settings) {
  const Index m = memory.m, n = memory.n;
  const Quintic& q = settings.quintic;
  float *const a = memory.a.data(), *const b = memory.b.data(), *const scaled = memory.scaled.data();
  kernels.product(stream, chain_square(m, n, settings, memory.x.data(), a));
  if (settings.precision == Precision::bf16) kernels.scale_to_bf16(stream, q.c, a, m * m, scaled);
  kernels.product(stream, chain_polynomial(m, settings, a, scaled, b));
  kernels.product(stream, chain_next(m, n, q.a, settings, memory.x.data(), b, memory.next.data()));
  std::swap(memory.x, memory.next);
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

// At its end nothing of the stream is under way: the caller's matrix may go then, also after an error.
struct Drained {
  const Stream& stream;
  ~Drained() { stream.drain(); }
};

Matrix on_device(const Kernels& kernels, const Stream& stream, const Matrix& x, const NewtonSchulzSettings& settings,
                 const std::string& parameter) {
  MemoryMeter* const meter = MemoryMeter::current();
  NewtonSchulzMemory memory(kernels.device(), x.rows(), x.cols(), settings.precision, meter);
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
                                       MemoryMeter* meter)
    : rows(its_rows),
      cols(its_cols),
      precision(its_precision),
      tall(rows > cols),
      m(std::min(rows, cols)),
      n(std::max(rows, cols)),
      x(device, m * n, meter),
      sum(device, Kernels::sum_of_squares_room(m * n)) {
  next = {device, m * n, meter};
  a = {device, m * m, meter};
  b = {device, m * m, meter};
  if (precision == Precision::bf16) scaled = {device, m * m, meter};
}

void newton_schulz_chain(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory, const float* x,
                         const NewtonSchulzSettings& settings, float* out, const std::string& parameter) {
  if (memory.precision != settings.precision)
    throw std::invalid_argument("Newton–Schulz was given memory for another precision; make it for this one");
  take(kernels, stream, x, memory);
  normalize(kernels, stream, memory, settings.precision, parameter);
  for (int step = 0; step < settings.steps; ++step) chain_step(kernels, stream, memory, settings);
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
