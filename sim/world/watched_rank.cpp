#include "sim/world/watched_rank.hpp"

namespace muonwalk::sim {

void WatchedRank::sort_in(std::vector<Record> records) {
  for (Record& record : records) {
    if (std::holds_alternative<EndOfStep>(record)) {
      steps_.push_back(std::exchange(open_step_, {}));
    } else if (auto* failed = std::get_if<Failed>(&record)) {
      failure_ = std::move(*failed);
    } else if (auto* posted = std::get_if<Posted>(&record)) {
      posted_.push_back(std::move(*posted));
    } else {
      open_step_.push_back(std::move(record));
    }
  }
}

}  // namespace muonwalk::sim
