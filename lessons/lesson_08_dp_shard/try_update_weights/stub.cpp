// fails: It is the old weights
#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"

using namespace muonwalk;

void update_weights(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay, float rms) {
  // Your code goes here.
}
