#include "sim/cluster/standstill.hpp"

#include <algorithm>

namespace muonwalk::sim {
namespace {

constexpr double kLongestLook = 1;
// Ranks that together use less than this share of a core stand still. Gloo's event loops look around a hundred times a
// second even when nothing happens, so a bit is allowed for each rank.
constexpr double kStandstillShare = 0.05;
constexpr double kStandstillSharePerRank = 0.003;

}  // namespace

AwakeClock::AwakeClock() : looked_at_(monotonic_seconds()) {}

double AwakeClock::seconds() {
  const double now = monotonic_seconds();
  seconds_ += std::min(now - looked_at_, kLongestLook);
  looked_at_ = now;
  return seconds_;
}

double StandstillWatch::seconds(const std::vector<RankProcess>& ranks, double now) {
  if (began_ && now - looked_at_ < 0.25) return still_;
  double used = 0;
  bool starved = false;
  for (const RankProcess& rank : ranks) {
    used += rank.cpu_seconds();
    starved = starved || rank.wants_processor();
  }
  const double span = now - looked_at_;
  const double share = kStandstillShare + kStandstillSharePerRank * static_cast<double>(ranks.size());
  still_ = !began_ || starved || used - used_before_ > share * span ? 0 : still_ + span;
  began_ = true;
  used_before_ = used;
  looked_at_ = now;
  return still_;
}

}  // namespace muonwalk::sim
