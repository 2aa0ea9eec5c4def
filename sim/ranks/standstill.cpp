#include "sim/ranks/standstill.hpp"

#include <algorithm>

namespace muonwalk::sim {
namespace {

constexpr double kLongestLook = 1;
constexpr double kSecondsBetweenLooks = 0.25;
// Ranks that together use less than this share of a core stand still. Gloo's event loops look around a hundred times a
// second even when nothing happens, so a bit is allowed for each rank.
constexpr double kStandstillShare = 0.05;
constexpr double kStandstillSharePerRank = 0.003;

}  // namespace

double AwakeClock::seconds() {
  const double now = monotonic_seconds();
  seconds_ += std::min(now - looked_at_, kLongestLook);
  looked_at_ = now;
  return seconds_;
}

double StandstillWatch::seconds(const WatchedRanks& ranks, double now) {
  if (began_ && now - looked_at_ < kSecondsBetweenLooks) return still_;
  double used = 0;
  bool starved = false;
  for (const auto& rank : ranks) {
    used += rank->cpu_seconds();
    starved = starved || rank->wants_processor() || rank->stopped();
  }
  const double span = now - looked_at_;
  const double share = kStandstillShare + kStandstillSharePerRank * static_cast<double>(ranks.size());
  still_ = !began_ || starved || used - used_before_ > share * span ? 0 : still_ + span;
  began_ = true;
  used_before_ = used;
  looked_at_ = now;
  return still_;
}

ComputeWatch::ComputeWatch(const Progress& progress, int threads_per_rank)
    : progress_(&progress),
      threads_(threads_per_rank),
      signs_(static_cast<std::size_t>(progress.ranks())),
      cpu_seconds_(static_cast<std::size_t>(progress.ranks()), -1) {}

int ComputeWatch::rank_beyond(double seconds, const WatchedRanks& ranks, double now) {
  if (looked_at_ >= 0 && now - looked_at_ < kSecondsBetweenLooks) return -1;
  looked_at_ = now;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const ProgressSlot& slot = progress_->slot(static_cast<int>(r));
    const std::uint64_t signs = slot.signs;
    const double used = ranks[r]->cpu_seconds();
    if (cpu_seconds_[r] < 0 || signs != signs_[r] || slot.waits_for != ProgressSlot::kNobody) {
      signs_[r] = signs;
      cpu_seconds_[r] = used;
    }
    if (used - cpu_seconds_[r] > seconds * threads_) return static_cast<int>(r);
  }
  return -1;
}

}  // namespace muonwalk::sim
