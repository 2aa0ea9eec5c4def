// fails: too many bytes
#include <cmath>

#include "lessons/lesson_12_matched_rms/try_monitor_rms/contract.hpp"

using namespace muonwalk;

// Every rank gets every matrix, and adds it up by itself.
Flat monitor_rms(const std::vector<Flat>& mine, const std::vector<Index>& sizes, Communicator& ranks) {
  Flat rms(mine.size());
  for (std::size_t p = 0; p < mine.size(); ++p) {
    Flat count(1, static_cast<float>(mine[p].size()));
    const Flat owned = ranks.all_gather(count);
    std::vector<Index> counts(owned.begin(), owned.end());
    Flat whole(static_cast<std::size_t>(sizes[p]));
    ranks.all_gather_v(mine[p].data(), counts, whole.data());
    double squares = 0;
    for (const float value : whole) squares += static_cast<double>(value) * value;
    rms[p] = static_cast<float>(std::sqrt(squares / static_cast<double>(sizes[p])));
  }
  return rms;
}
