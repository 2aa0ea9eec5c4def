#include "lessons/lesson_22_nccl/processor.hpp"

#include <algorithm>

#include "src/errors.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk::sim {
namespace {

// Whatever it is asked for is done when the call returns.
class HostProcessor : public Processor {
 public:
  std::string name() const override { return "the host"; }
  std::string memory_of(const void*) const override { return "the host's memory"; }

  Array array(Index size) override { return make<float>(size); }
  ArrayOf<bfloat16> array_of_bf16(Index size) override { return make<bfloat16>(size); }

  void copy(float* to, const float* from, Index count) override { std::copy(from, from + count, to); }

  void copy_rows(float* to, Index to_stride, const float* from, Index from_stride, Index rows, Index cols) override {
    for (Index row = 0; row < rows; ++row) copy(to + row * to_stride, from + row * from_stride, cols);
  }

  void set_to_zero(const Array& array) override { std::fill(array.data(), array.data() + array.size(), 0.0f); }
  void to_bf16(const float* values, Index count, bfloat16* out) override { muonwalk::to_bf16(values, count, out); }
  void from_bf16(const bfloat16* values, Index count, float* out) override { muonwalk::from_bf16(values, count, out); }

  void momentum(const float* gradient, float* momentum_buffer, Index count, const MuonSettings& settings,
                float* update) override {
    muonwalk::momentum(gradient, momentum_buffer, count, settings, update);
  }

  void orthogonalize(float* matrix, Shape shape, const MuonSettings& settings, const std::string& parameter) override {
    // The caller's array is the input, and a copy of it is nothing that the step holds: it is counted aside.
    MemoryMeter aside;
    Matrix whole;
    {
      const MeterScope scope(aside);
      whole = Matrix(shape.rows, shape.cols, Flat(matrix, matrix + shape.size()));
    }
    {
      const Matrix result = muonwalk::orthogonalize(whole, settings, parameter);
      copy(matrix, result.data(), result.size());
    }
    const MeterScope scope(aside);
    whole = Matrix();
  }

  void apply(float* weights, const float* orthogonal, Index count, Shape full_shape,
             const MuonSettings& settings) override {
    muonwalk::apply(weights, orthogonal, count, full_shape, settings);
  }

  void wait() override {}

  void watch(const std::string& phase, const std::function<void()>& work) override {
    entry(phase);
    work();
  }

 private:
  template <class T>
  static ArrayOf<T> make(Index size) {
    auto memory = std::make_shared<FlatOf<T>>(static_cast<std::size_t>(size));
    T* const data = memory->data();
    return {std::move(memory), data, size};
  }
};

}  // namespace

std::unique_ptr<Processor> host_processor() { return std::make_unique<HostProcessor>(); }

#ifndef MUONWALK_LESSON_22_ON_GPUS
std::unique_ptr<Processor> gpu_processor(int) {
  throw UsageError(
      "a GPU was asked for, and this program was built without CUDA; configure with -DMUONWALK_CUDA=ON, or let the "
      "host compute");
}
#endif

Array Processor::from_host(const Flat& values) {
  Array made = array(static_cast<Index>(values.size()));
  copy(made.data(), values.data(), made.size());
  wait();
  return made;
}

Flat Processor::on_host(const Array& array) {
  Flat values(static_cast<std::size_t>(array.size()));
  copy(values.data(), array.data(), array.size());
  wait();
  return values;
}

PhaseWork& Processor::entry(const std::string& phase) {
  const auto known = std::find_if(noted_.begin(), noted_.end(), [&](auto& each) { return each.phase == phase; });
  if (known != noted_.end()) return *known;
  noted_.emplace_back();
  noted_.back().phase = phase;
  return noted_.back();
}

}  // namespace muonwalk::sim
