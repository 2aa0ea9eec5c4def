#include <algorithm>

#include "lessons/lesson_22_nccl/processor.hpp"
#include "src/cuda/kernels.hpp"
#include "src/cuda/newton_schulz_cuda.hpp"

namespace muonwalk::sim {
namespace {

class GpuProcessor : public Processor, private cuda::QueueObserver {
 public:
  explicit GpuProcessor(int ordinal)
      : device_(ordinal), kernels_(device_), stream_(device_, "mine"), retired_(std::make_shared<Retired>()) {}

  // Memory goes behind the work that uses it.
  ~GpuProcessor() override { stream_.drain(); }

  std::string name() const override { return "GPU " + std::to_string(device_.ordinal()); }

  std::string memory_of(const void* address) const override {
    const std::optional<int> ordinal = cuda::device_of(address);
    return ordinal ? "the memory of GPU " + std::to_string(*ordinal) : "the host's memory";
  }

  Array array(Index size) override { return make<float>(size); }
  ArrayOf<bfloat16> array_of_bf16(Index size) override { return make<bfloat16>(size); }

  void copy(float* to, const float* from, Index count) override { cuda::copy(stream_, to, from, count); }
  void copy_rows(float* to, Index to_stride, const float* from, Index from_stride, Index rows, Index cols) override {
    cuda::copy_rows(stream_, to, to_stride, from, from_stride, rows, cols);
  }
  void set_to_zero(const Array& array) override {
    cuda::set_to_zero(stream_, array.data(), array.size() * Index{sizeof(float)});
  }
  void to_bf16(const float* values, Index count, bfloat16* out) override {
    kernels_.to_bf16(stream_, values, count, out);
  }
  void from_bf16(const bfloat16* values, Index count, float* out) override {
    kernels_.from_bf16(stream_, values, count, out);
  }

  void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings,
                float* update) override {
    kernels_.momentum(stream_, gradient, momentum_buffer, count, static_cast<float>(settings.momentum),
                      settings.nesterov, update);
  }

  void orthogonalize(float* matrix, Shape shape, const MuonSettings& settings, const std::string& parameter) override {
    cuda::NewtonSchulzMemory memory(device_, shape.rows, shape.cols, settings.newton_schulz.precision,
                                    MemoryMeter::current());
    try {
      cuda::newton_schulz_chain(kernels_, stream_, memory, matrix, settings.newton_schulz, matrix, parameter);
    } catch (...) {
      stream_.drain();
      throw;
    }
  }

  void apply(float* weights, const float* orthogonal, Index count, Shape full_shape,
             const MuonSettings& settings) override {
    kernels_.apply(stream_, weights, orthogonal, count, 1.0f - settings.lr * settings.weight_decay,
                   update_scale(full_shape, settings));
  }

  void wait() override {
    try {
      stream_.wait();
    } catch (...) {
      stream_.drain();  // memory of the host goes when this has thrown
      throw;
    }
    retired_->clear();
  }

  void watch(const std::string& phase, const std::function<void()>& work) override {
    entry(phase);
    phase_ = phase;
    const cuda::QueueObserverScope scope(*this);
    work();
  }

 private:
  using Retired = std::vector<std::shared_ptr<void>>;

  // When an array goes, its elements are held no more; the memory itself goes when nothing that is queued can still use
  // it, as with the caching allocators of the big frameworks.
  template <class T>
  ArrayOf<T> make(Index size) {
    const Index bytes = size * Index{sizeof(T)};
    const std::shared_ptr<void> memory = cuda::device_memory(device_, bytes);
    MemoryMeter* const meter = MemoryMeter::current();
    if (meter != nullptr) meter->add(size, bytes);
    T* const data = static_cast<T*>(memory.get());
    const auto retire = [=, retired = retired_](void*) {
      if (meter != nullptr) meter->remove(size, bytes);
      retired->push_back(memory);
    };
    return {std::shared_ptr<void>(data, retire), data, size};
  }

  void queued(const cuda::Stream& stream, cuda::Queued what, Index bytes) override {
    PhaseWork& work = entry(phase_);
    if (std::find(work.queues.begin(), work.queues.end(), stream.name()) == work.queues.end())
      work.queues.push_back(stream.name());
    work.kernels += what == cuda::Queued::kernel;
    work.library_calls += what == cuda::Queued::library;
    work.copies += what != cuda::Queued::kernel && what != cuda::Queued::library;
    if (what == cuda::Queued::copy_to_device) work.to_device += bytes;
    if (what == cuda::Queued::copy_to_host) work.to_host += bytes;
  }

  void waits(const cuda::Stream&) override { ++entry(phase_).host_waits; }

  cuda::Device device_;
  cuda::Kernels kernels_;
  cuda::Stream stream_;
  std::shared_ptr<Retired> retired_;
  std::string phase_;
};

}  // namespace

std::unique_ptr<Processor> gpu_processor(int ordinal) { return std::make_unique<GpuProcessor>(ordinal); }

}  // namespace muonwalk::sim
