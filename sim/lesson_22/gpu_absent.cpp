// What there is of GPUs in a program that was built without CUDA: the sentence that says so.

#include "sim/lesson_22/processor.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

std::unique_ptr<Processor> gpu_processor(int) {
  throw UsageError(
      "a GPU was asked for, and this program was built without CUDA; configure with -DMUONWALK_CUDA=ON, or let the "
      "host "
      "compute");
}

}  // namespace muonwalk::sim
