#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/matrix.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// What a rank's processor did in one phase of a step, as it was seen where the work is handed to it.
struct PhaseWork {
  std::string phase;
  std::vector<std::string> queues;   ///< The streams that work was queued on, by name.
  Index kernels = 0;                 ///< Kernels of ours.
  Index copies = 0;                  ///< Copies, within the device or across, and memory that is set to zero.
  Index library_calls = 0;           ///< Calls of NCCL; what is called together counts once.
  Index host_waits = 0;              ///< How often the host waited for a stream.
  Index to_device = 0, to_host = 0;  ///< Bytes between the host's memory and the device's.
};

/// Elements in the memory of a Processor. Whoever has none but the host's may look into them; an address on a GPU is
/// only handed on: to the Processor, to a Communicator. It has to go before its Processor does.
template <class T>
class ArrayOf {
 public:
  /// No elements.
  ArrayOf() = default;
  /// Elements that Processor::array has made. It can be handed on, but not copied.
  ArrayOf(std::shared_ptr<void> memory, T* data, Index size) : memory_(std::move(memory)), data_(data), size_(size) {}
  ArrayOf(ArrayOf&& other) noexcept { *this = std::move(other); }
  ArrayOf& operator=(ArrayOf&& other) noexcept {
    memory_ = std::move(other.memory_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  /// The address of the first element.
  T* data() const { return data_; }
  /// How many elements there are.
  Index size() const { return size_; }

 private:
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
  Index size_ = 0;
};
/// Elements of float32.
using Array = ArrayOf<float>;

/// What a rank computes with, and where its arrays lie: the processor of the host and the host's memory, or a GPU and
/// its memory. The steps of the journey (src/optim/steps.hpp), with the same bits on both.
///
/// On a GPU, work is queued: a function returns when the queue (CUDA calls it a stream) has the work, which is then
/// done in order. `wait` returns when all of it is done. What uses an array may still be queued when the array goes.
/// Host memory that is copied from must stay as it is until then.
class Processor {
 public:
  virtual ~Processor() = default;

  /// "the host", "GPU 2".
  virtual std::string name() const = 0;
  /// In whose memory an address lies: "the host's memory", "the memory of GPU 2". Where there are GPUs, CUDA's driver
  /// is asked, which goes by the address alone.
  virtual std::string memory_of(const void* address) const = 0;

  /// `size` elements of no definite value, counted by the rank's MemoryMeter.
  virtual Array array(Index size) = 0;
  /// `size` elements of two bytes each, for what travels in bf16.
  virtual ArrayOf<bfloat16> array_of_bf16(Index size) = 0;

  /// Copies `count` elements, within a memory or from one to another: the addresses say which.
  virtual void copy(float* to, const float* from, Index count) = 0;
  /// Copies `rows` rows of `cols` elements that begin every `to_stride` and `from_stride` elements: a slice of columns
  /// into a whole matrix, or out of one.
  virtual void copy_rows(float* to, Index to_stride, const float* from, Index from_stride, Index rows, Index cols) = 0;
  /// Sets all elements to zero.
  virtual void set_to_zero(const Array& array) = 0;
  /// Rounds to two bytes, and widens again.
  /// @{
  virtual void to_bf16(const float* values, Index count, bfloat16* out) = 0;
  virtual void from_bf16(const bfloat16* values, Index count, float* out) = 0;
  /// @}

  /// momentum() of steps.hpp.
  virtual void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings,
                        float* update) = 0;
  /// orthogonalize() of steps.hpp, in place; the host waits for the norm, which says whether there is anything to do.
  virtual void orthogonalize(float* matrix, Shape shape, const MuonSettings& settings,
                             const std::string& parameter) = 0;
  /// apply() of steps.hpp.
  virtual void apply(float* weights, const float* orthogonal, Index count, Shape full_shape,
                     const MuonSettings& settings) = 0;

  /// Returns when all that was queued so far is done.
  virtual void wait() = 0;
  /// Does `work` on the calling thread, and notes under `phase` what is queued on any stream meanwhile, by the
  /// Processor or by a Communicator.
  virtual void watch(const std::string& phase, const std::function<void()>& work) = 0;
  /// What was noted, in the order of the phases.
  const std::vector<PhaseWork>& noted() const { return noted_; }
  /// Forgets it.
  void forget() { noted_.clear(); }

  /// An array of these values, and the values of an array: from the host's memory and to it. The host waits for the
  /// copy, so whatever it held may go.
  /// @{
  Array from_host(const Flat& values);
  Flat on_host(const Array& array);
  /// @}

 protected:
  /// The entry of a phase; a new one where it is the first time.
  PhaseWork& entry(const std::string& phase);

 private:
  std::vector<PhaseWork> noted_;
};

/// The processor of the host.
std::unique_ptr<Processor> host_processor();
/// GPU number `ordinal`. Throws UsageError where there is none, and in a program that was built without CUDA.
std::unique_ptr<Processor> gpu_processor(int ordinal);
/// The GPU's processor, where there is one, else the host's.
inline std::unique_ptr<Processor> processor_of(const std::optional<int>& gpu) {
  return gpu ? gpu_processor(*gpu) : host_processor();
}

}  // namespace muonwalk::sim
