// fails: elements of this rank differ
#include <algorithm>

#include "lessons/lesson_19_pipeline_3d/try_one_f_one_b/contract.hpp"

using namespace muonwalk;

void one_f_one_b(int stages, int stage, int micro_batches, const MoveOfStage& forward, const MoveOfStage& backward) {
  const int ahead = std::min(stages - 1 - stage, micro_batches - 1);
  for (int i = 0; i < ahead; ++i) forward(i);
  for (int i = ahead; i + 1 < micro_batches; ++i) {
    forward(i);
    backward(i - ahead);
  }
  for (int i = micro_batches - 1 - ahead; i < micro_batches; ++i) backward(i);
}
