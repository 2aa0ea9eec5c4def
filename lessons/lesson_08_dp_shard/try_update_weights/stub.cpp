// fails: It is the old weights
#include <algorithm>
#include <cmath>

#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Shape has rows, cols, and size(), which is rows · cols.
void update_weights(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay, float rms) {
  // Your code goes here.
}
