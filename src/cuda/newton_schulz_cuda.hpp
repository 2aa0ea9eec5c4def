#pragma once

#include <string>

#include "src/cuda/kernels.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk::cuda {

/// The memory that Newton–Schulz needs on a device for matrices of one shape. Whoever has many of them keeps it: taking
/// and giving back memory makes a device wait.
class NewtonSchulzMemory {
 public:
  /// For matrices of rows × cols. `meter`, where given, counts X, A, B, c A
  /// in bf16, and the next X, as the CPU's are counted, and must outlive this. Throws RunError where there is no room.
  NewtonSchulzMemory(const Device& device, Index rows, Index cols, Precision precision, MemoryMeter* meter = nullptr);

  const Index rows, cols;
  const Precision precision;
  const bool tall;  ///< With more rows than columns, they are iterated as their transposes.
  const Index m;    ///< The smaller of both sizes.
  const Index n;    ///< The larger of both sizes.

  DeviceArray<float> x;     ///< The matrix, m × n.
  DeviceArray<double> sum;  ///< The sum of squares, for the norm.

  DeviceArray<float> next, a, b, scaled;
};

/// muonwalk::newton_schulz on a device's memory, with the bits of Products::chain on any device: `x`, of the shape that
/// `memory` is for, stays as it is, and `out` gets the result (it may be `x`). It returns when that is there. Throws
/// UsageError, naming `parameter`, when x holds a NaN or an infinity, RunError where a call to CUDA fails, and
/// std::invalid_argument where `memory` is for another precision. Products and threads in the settings are the CPU's.
void newton_schulz_chain(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory, const float* x,
                         const NewtonSchulzSettings& settings, float* out, const std::string& parameter = "x");

/// What a ChainEngineScope takes so that newton_schulz with chains runs on this device: the matrix goes there and the
/// result comes back, with the CPU's bits. What lies on the device is counted by the calling thread's MemoryMeter. The
/// device, its kernels and a stream live as long as the engine.
ChainEngine chain_engine(const Device& device);

}  // namespace muonwalk::cuda
