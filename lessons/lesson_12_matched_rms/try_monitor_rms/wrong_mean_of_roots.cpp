// fails: the mean of the ranks' own
#include <cmath>

#include "lessons/lesson_12_matched_rms/try_monitor_rms/contract.hpp"

using namespace muonwalk;

// As one would average a loss.
Flat monitor_rms(const std::vector<Flat>& mine, const std::vector<Index>& sizes, Communicator& ranks) {
  Flat rms(mine.size());
  for (std::size_t p = 0; p < mine.size(); ++p) {
    double squares = 0;
    for (const float value : mine[p]) squares += static_cast<double>(value) * value;
    if (!mine[p].empty()) rms[p] = static_cast<float>(std::sqrt(squares / static_cast<double>(mine[p].size())));
  }
  ranks.all_reduce(rms.data(), static_cast<Index>(rms.size()));
  for (float& value : rms) value /= static_cast<float>(ranks.size());
  return rms;
}
