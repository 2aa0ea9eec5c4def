// fails: zeros
#include "lessons/lesson_12_matched_rms/try_monitor_rms/contract.hpp"

using namespace muonwalk;

Flat monitor_rms(const std::vector<Flat>& mine, const std::vector<Index>& sizes, Communicator& ranks) {
  // Your code goes here.
  return Flat(mine.size());
}
