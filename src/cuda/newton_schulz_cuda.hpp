#pragma once

#include <string>

#include "src/cuda/cublas.hpp"
#include "src/cuda/kernels.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk::cuda {

/// What computes the products of Newton–Schulz on a device.
enum class Engine {
  chain,   ///< with the CPU's bits: those of newton_schulz with Products::chain
  cublas,  ///< for speed; near the chain
};

/// The memory that Newton–Schulz needs on a device for matrices of one shape. Whoever has many of them keeps it: taking
/// and giving back memory makes a device wait.
class NewtonSchulzMemory {
 public:
  /// For matrices of rows × cols, on one engine, in the settings' precision. `meter`, where given, counts X, A, B, c A
  /// in bf16, and the next X, as the CPU's are counted, and must outlive this. Throws RunError where there is no room.
  NewtonSchulzMemory(const Device& device, Index rows, Index cols, Precision precision, Engine engine,
                     MemoryMeter* meter = nullptr);

  const Index rows;           ///< of the matrices
  const Index cols;           ///< of the matrices
  const Precision precision;  ///< in which they are iterated
  const Engine engine;        ///< which products
  const bool tall;            ///< rows > cols: they are iterated as their transposes
  const Index m;              ///< the smaller of both sizes
  const Index n;              ///< the larger of both sizes

  DeviceArray<float> x;     ///< m × n
  DeviceArray<double> sum;  ///< for the norm

  /// The others, in float32 with chains, and with cuBLAS in fp32.
  /// @{
  DeviceArray<float> next, a, b, scaled;
  /// @}

  /// All of them in two bytes, with cuBLAS in bf16.
  /// @{
  DeviceArray<bfloat16> narrow_x, narrow_next, narrow_a, narrow_b;
  /// @}
};

/// muonwalk::newton_schulz on a device's memory: `x`, of the shape that `memory` is for, stays as it is, and `out` gets
/// the result (it may be `x`). It returns when that is there. Throws UsageError, naming `parameter`, when x holds a NaN
/// or an infinity, RunError where a call to CUDA fails, and std::invalid_argument where `memory` is for another
/// precision or engine. The settings' products and threads are the CPU's own affair.
/// @{

/// With chains: the result has the bits of newton_schulz with Products::chain, on any device.
void newton_schulz_chain(const Kernels& kernels, const Stream& stream, NewtonSchulzMemory& memory, const float* x,
                         const NewtonSchulzSettings& settings, float* out, const std::string& parameter = "x");

/// With cuBLAS, for speed: in bf16 with its products of two-byte numbers. The bits are those of one kind of device and
/// one release of cuBLAS, so what they are compared with has to be computed there too. They are near the chain's.
void newton_schulz_cublas(const Cublas& cublas, const Kernels& kernels, const Stream& stream,
                          NewtonSchulzMemory& memory, const float* x, const NewtonSchulzSettings& settings, float* out,
                          const std::string& parameter = "x");
/// @}

/// What a ChainEngineScope takes so that newton_schulz with chains runs on this device: the matrix goes there and the
/// result comes back, with the CPU's bits. What lies on the device is counted by the calling thread's MemoryMeter. The
/// device, its kernels and a stream live as long as the engine.
ChainEngine chain_engine(const Device& device);

}  // namespace muonwalk::cuda
