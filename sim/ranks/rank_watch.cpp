#include "sim/ranks/rank_watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>

#include "sim/ranks/compute_limit.hpp"
#include "sim/ranks/rank_process.hpp"
#include "src/errors.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kLongestLook = 1;
constexpr double kSecondsBetweenLooks = 0.25;
// Ranks that together use less than this share of a core stand still. Gloo's event loops look around a hundred times a
// second even when nothing happens, so a bit is allowed for each rank.
constexpr double kStandstillShare = 0.05;
constexpr double kStandstillSharePerRank = 0.003;

// How long the parent listens after the first sign of a failure, so that the cause is told from its consequences.
constexpr double kGraceSeconds = 0.3;
// How much longer, while all who failed did so because they lost another rank: the cause must be on its way.
constexpr double kCauseSeconds = 3;
// How long ranks must have stood still for it to be certain that those that wait for each other will never go on.
constexpr double kHopelessSeconds = 1;
// A rank on another host that is not heard of for so long gets at least this much, however short --timeout is: its
// agent says how it is ten times a second.
constexpr double kLeastUnheardOf = 2;
// How long ranks that are not needed any more may take to leave by themselves, all together. Time in which one is
// stopped, held by a debugger or without a processor, or in which nobody hears of it, is up to --timeout.
constexpr double kLeaveSeconds = 5;

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

RankWatch::RankWatch(const Options& options, const Progress& progress) : options_(options), progress_(&progress) {}

StepReports RankWatch::wait_for_run(int run, const std::string& title) {
  AwakeClock clock;
  StandstillWatch standstill;
  ComputeWatch computing(*progress_, options_.threads_per_rank());
  stopped_since_.assign(ranks_.size(), -1);
  heard_of_at_.assign(ranks_.size(), 0);
  double first_sign = -1;
  for (bool first = true;; first = false) {
    if (!first) wait_for_news();  // ranks may have been ahead, and this run's news be here
    bool all = true, all_lost = true, some_lost = false, cause_known = false;
    for (auto& rank : ranks_) {
      if (rank->finished(run)) continue;
      all = false;
      some_lost = some_lost || rank->lost();
      all_lost = all_lost && rank->lost();
      cause_known = cause_known || (rank->lost() && !rank->lost_peer());
    }
    if (all) break;
    const double now = clock.seconds();
    if (some_lost && first_sign < 0) first_sign = now;
    if (some_lost && (all_lost || now - first_sign > (cause_known ? kGraceSeconds : kCauseSeconds)))
      give_up(cause_of_loss());
    check_stopped(run, now);
    check_heard_of(run, now);
    const double still = standstill.seconds(ranks_, now);
    if (still >= options_.timeout_seconds) give_up(cause_of_standstill(run, title));
    const int busy = computing.rank_beyond(kComputeTimeouts * options_.timeout_seconds, ranks_, now);
    if (busy >= 0)
      give_up(fmt::format("{} {}", name(static_cast<std::size_t>(busy)),
                          endless_work_text(progress_->step(busy), kComputeTimeouts * options_.timeout_seconds)));
    if (still >= kHopelessSeconds && run > 1) give_up_if_hopeless(title);
  }
  StepReports reports;
  for (auto& rank : ranks_) reports.push_back(rank->take_step(run));
  return reports;
}

void RankWatch::require_ended(int runs) {
  AwakeClock clock;
  stopped_since_.assign(ranks_.size(), -1);
  heard_of_at_.assign(ranks_.size(), 0);
  double left = kLeaveSeconds;  // for all together, of time in which they could have left
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    bool ended = false;
    double held = 0, used_before = ranks_[r]->cpu_seconds();
    for (double before = clock.seconds(); left > 0;) {
      ended = ranks_[r]->file() < 0 && ranks_[r]->wait_for_end(0);
      if (ended || ranks_[r]->failure() || ranks_[r]->finished(runs + 1)) break;
      wait_for_news();
      const double now = clock.seconds();
      check_stopped(runs + 1, now);
      check_heard_of(runs + 1, now);
      const double span = now - before, used = ranks_[r]->cpu_seconds();
      // Where it is not asleep, what counts is the processor time that it gets.
      const double own = ranks_[r]->wants_processor() ? used - used_before : span;
      before = now;
      used_before = used;
      if (ranks_[r]->stopped() || now - heard_of_at_[r] > kHopelessSeconds / 2) continue;
      left -= own;
      held += span - own;
      if (const double most = std::max(options_.timeout_seconds, kLeaveSeconds); held >= most)
        give_up(
            fmt::format("{} has not ended within {} s: a debugger holds it, or it gets no processor", name(r), most));
    }
    const bool astray = !ended || ranks_[r]->failure() || ranks_[r]->finished(runs + 1);
    if (!astray && progress_->slot(static_cast<int>(r)).stage == ProgressSlot::Stage::finished) continue;
    if (!astray) give_up(cause_of_loss());
    give_up(
        fmt::format("{} went on to '{}' when this program had come to its end: something that only this program knows, "
                    "such as the outcome of a check, decided what a rank does",
                    name(r), progress_->step(static_cast<int>(r))));
  }
}

void RankWatch::let_leave() {
  const double deadline = monotonic_seconds() + kLeaveSeconds;
  for (auto& rank : ranks_) rank->wait_for_end(deadline - monotonic_seconds());
  end_ranks();
}

void RankWatch::wait_for_news() {
  std::vector<pollfd> files;
  for (const auto& rank : ranks_)
    if (rank->file() >= 0) files.push_back({rank->file(), POLLIN, 0});
  poll(files.data(), files.size(), 20);
  for (auto& rank : ranks_) rank->take_news();
  news_taken();
}

void RankWatch::check_stopped(int run, double now) {
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (!ranks_[r]->stopped() || ranks_[r]->finished(run))
      stopped_since_[r] = -1;
    else if (stopped_since_[r] < 0)
      stopped_since_[r] = now;
    else if (now - stopped_since_[r] >= options_.timeout_seconds)
      give_up(cause_stopped(r));
}

void RankWatch::check_heard_of(int run, double now) {
  now_ = now;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r]->heard_of() || ranks_[r]->finished(run) || ranks_[r]->ended()) heard_of_at_[r] = now;
    if (now - heard_of_at_[r] >= std::max(options_.timeout_seconds, kLeastUnheardOf)) give_up(cause_unheard_of(r));
  }
}

std::string RankWatch::name(std::size_t rank) const {
  const std::string& host = ranks_[rank]->host();
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host);
}

std::string RankWatch::where(std::size_t rank) const {
  return fmt::format("in step '{}'", progress_->step(static_cast<int>(rank)));
}

std::string RankWatch::cause_stopped(std::size_t r) const {
  return fmt::format("{} was stopped by signal {} {} and did not go on within {} s", name(r),
                     signal_text(ranks_[r]->stop_signal()), where(r), options_.timeout_seconds);
}

std::string RankWatch::cause_unheard_of(std::size_t r) const {
  const char* const cause =
      ranks_[r]->host_answers()
          ? "the process that a launcher or you have started for it is stopped, or gets no processor"
          : "its host does not answer, because it is gone or the network between the hosts is";
  return fmt::format("{} was not heard of {} for {} s: {}", name(r), where(r), std::floor(now_ - heard_of_at_[r]),
                     cause);
}

// After all its work, with nothing to complain of.
bool RankWatch::left_properly(std::size_t r) const {
  return ranks_[r]->status() == 0 && progress_->slot(static_cast<int>(r)).stage == ProgressSlot::Stage::finished;
}

// Of all ranks that are lost, the one that was lost first for a reason of its own.
std::string RankWatch::cause_of_loss() {
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r]->ended() && WIFSIGNALED(ranks_[r]->status()))
      return fmt::format("{} was killed by signal {} {}", name(r), signal_text(WTERMSIG(ranks_[r]->status())),
                         where(r));
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (!ranks_[r]->out_of_sight().empty())
      return fmt::format("{} was lost {}: {}", name(r), where(r), ranks_[r]->out_of_sight());
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r]->ended() && !ranks_[r]->failure() && ranks_[r]->status() == WatchedRank::kUnknownStatus)
      return fmt::format(
          "{} is gone {}, and the system does not say how it ended: something else in this program has waited for it",
          name(r), where(r));
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r]->ended() && !ranks_[r]->failure() && !left_properly(r))
      return fmt::format("{} exited early with code {} {}", name(r), WEXITSTATUS(ranks_[r]->status()), where(r));
  std::size_t first = ranks_.size();
  const auto earlier = [&](const WatchedRank& a, const WatchedRank& b) {  // a cause is before its consequences
    return a.lost_peer() != b.lost_peer() ? b.lost_peer() : a.failure()->at < b.failure()->at;
  };
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r]->failure() && (first == ranks_.size() || earlier(*ranks_[r], *ranks_[first]))) first = r;
  end_ranks();
  raise(*ranks_[first]->failure(), name(first), progress_->step(static_cast<int>(first)));
}

std::string RankWatch::cause_of_no_rendezvous() const {
  std::vector<std::string> missing;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (progress_->slot(static_cast<int>(r)).stage == ProgressSlot::Stage::starting) missing.push_back(name(r));
  if (missing.empty())
    return fmt::format("the ranks did not all connect within {} s in step 'rendezvous'; try a longer --timeout",
                       options_.timeout_seconds);
  return fmt::format("{} never connected: the others waited {} s for it in step 'rendezvous'", fmt::join(missing, ", "),
                     options_.timeout_seconds);
}

std::string RankWatch::cause_of_standstill(int run, const std::string& title) const {
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r]->stopped()) return cause_stopped(r);
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (now_ - heard_of_at_[r] >= kHopelessSeconds) return cause_unheard_of(r);
  if (run == 1) return cause_of_no_rendezvous();
  std::vector<int> idle, waiting, left;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r]->finished(run)) {
      left.push_back(static_cast<int>(r));
      continue;
    }
    (progress_->slot(static_cast<int>(r)).waits_for != ProgressSlot::kNobody ? waiting : idle)
        .push_back(static_cast<int>(r));
  }
  const int all = static_cast<int>(ranks_.size());
  if (!idle.empty())
    return fmt::format("{} did nothing in step '{}' for {} s, alive but neither computing nor talking",
                       idle.size() == 1 ? name(static_cast<std::size_t>(idle[0])) : ranks_text(idle, all), title,
                       options_.timeout_seconds);
  const std::string cycle = progress_->cycle();
  const bool sends = std::any_of(waiting.begin(), waiting.end(),
                                 [this](int r) { return progress_->slot(r).waits_in == CollectiveKind::send; });
  const std::string gone =
      left.empty() ? ""
                   : fmt::format("; {} {} left the step", ranks_text(left, all), left.size() == 1 ? "has" : "have");
  return fmt::format("nothing moved in step '{}' for {} s: {} {} for messages that {}{}{}{}", title,
                     options_.timeout_seconds, ranks_text(waiting, all),
                     waiting.size() == 1 || static_cast<int>(waiting.size()) == all ? "waits" : "wait",
                     sends ? "do not get through" : "nobody sends", gone, cycle.empty() ? "" : "; ", cycle);
}

// There is nothing to wait for when ranks wait for each other. (A rank that was stopped may have what it waits for.)
void RankWatch::give_up_if_hopeless(const std::string& title) {
  for (const auto& rank : ranks_)
    if (rank->stopped()) return;
  const std::string cycle = progress_->cycle(true);
  if (!cycle.empty()) give_up(fmt::format("nothing can move in step '{}': {}", title, cycle));
}

void RankWatch::give_up(const std::string& cause) {
  end_ranks();
  throw RunError(cause);
}

void RankWatch::end_ranks() {
  for (auto& rank : ranks_) rank->end();
}

void RankWatch::leave_to_parent() {
  for (auto& rank : ranks_) rank->leave_to_parent();
  ranks_.clear();
}

}  // namespace muonwalk::sim
