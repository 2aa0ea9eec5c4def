#include <cmath>

#include "lessons/lesson_12_matched_rms/try_monitor_rms/contract.hpp"

using namespace muonwalk;

// Sums of squares can be summed, roots can't: the root comes last.
Flat monitor_rms(const std::vector<Flat>& mine, const std::vector<Index>& sizes, Communicator& ranks) {
  Flat rms(mine.size());
  for (std::size_t p = 0; p < mine.size(); ++p) {
    double squares = 0;
    for (const float value : mine[p]) squares += static_cast<double>(value) * value;
    rms[p] = static_cast<float>(squares);
  }
  ranks.all_reduce(rms.data(), static_cast<Index>(rms.size()));
  for (std::size_t p = 0; p < rms.size(); ++p) rms[p] = std::sqrt(rms[p] / static_cast<float>(sizes[p]));
  return rms;
}
