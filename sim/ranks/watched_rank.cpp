#include "sim/ranks/watched_rank.hpp"

namespace muonwalk::sim {

void WatchedRank::sort_in(std::vector<Report> reports) {
  for (Report& report : reports)
    if (std::holds_alternative<EndOfStep>(report))
      steps_.push_back(std::exchange(open_step_, {}));
    else if (auto* failed = std::get_if<Failed>(&report))
      failure_ = std::move(*failed);
    else if (auto* posted = std::get_if<Posted>(&report))
      posted_.push_back(std::move(*posted));
    else
      open_step_.push_back(std::move(report));
}

}  // namespace muonwalk::sim
