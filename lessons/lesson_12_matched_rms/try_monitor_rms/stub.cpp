// fails: zeros
#include <cmath>

#include "lessons/lesson_12_matched_rms/try_monitor_rms/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Index is a signed integer of 64 bits.
Flat monitor_rms(const std::vector<Flat>& mine, const std::vector<Index>& sizes, Communicator& ranks) {
  // Your code goes here.
  return Flat(mine.size());
}
