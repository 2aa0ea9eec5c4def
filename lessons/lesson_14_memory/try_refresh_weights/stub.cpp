// fails: It is the old weights
#include <numeric>

#include "lessons/lesson_14_memory/try_refresh_weights/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>, and FlatOf<bfloat16> a std::vector<bfloat16>.
// Index is a signed integer of 64 bits.
void refresh_weights(Communicator& dp, const Flat& masters, const std::vector<Index>& counts,
                     FlatOf<bfloat16>& weights) {
  // Your code goes here.
}
