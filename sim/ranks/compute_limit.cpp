#include "sim/ranks/compute_limit.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "sim/fibers/fibers.hpp"
#include "sim/ranks/interrupt.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kLooks = 8;  // in the time that is allowed

// What it saw. The signal's handler comes on the thread that it looks at.
struct {
  const Progress* progress;
  std::optional<LastWords> words;
  int rank;
  std::uint64_t signs;
  int looks;  // that saw the same
} last_look;

void look(int) {
  if (!fiber::inside()) return;
  const int rank = fiber::self();
  const std::uint64_t signs = last_look.progress->slot(rank).signs;
  if (rank != last_look.rank || signs != last_look.signs) {
    last_look.rank = rank;
    last_look.signs = signs;
    last_look.looks = 0;
  } else if (++last_look.looks >= kLooks) {
    last_look.words->say_of(rank);
  }
}

}  // namespace

std::string endless_work_text(const std::string& step, double seconds) {
  return fmt::format(
      "did nothing but compute in step '{}' for {} s of processor time, without a call, a phase or the step's end; if "
      "it needs more, try a longer --timeout",
      step, seconds);
}

LastWords::LastWords(const std::string& program, const std::string& what_it_does) {
  fmt::format_to_n(before_, sizeof before_ - 1, "{}: rank ", program).out[0] = '\0';
  fmt::format_to_n(after_, sizeof after_ - 2, " {}", what_it_does).out[0] = '\0';
  std::strcat(after_, "\n");
}

void LastWords::say_of(int rank) const {
  char sentence[sizeof before_ + sizeof after_ + 16];
  fmt::format_to_n(sentence, sizeof sentence - 1, "{}{}{}", before_, rank, after_).out[0] = '\0';
  end_with(sentence);
}

ComputeLimit::ComputeLimit(const Progress& progress, const std::string& title, double seconds) {
  if (interrupted_program().empty()) return;
  last_look = {&progress, LastWords(interrupted_program(), endless_work_text(title, seconds)), -1, 0, 0};
  struct sigaction action {};
  action.sa_handler = look;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGVTALRM, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGVTALRM;
  set_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  const double interval = seconds / kLooks;
  const timespec each{static_cast<time_t>(interval), std::lround(std::fmod(interval, 1) * 999999999)};
  const itimerspec times{each, each};
  if (set_) timer_settime(timer_, 0, &times, nullptr);
}

ComputeLimit::~ComputeLimit() {
  if (!set_) return;
  timer_delete(timer_);
  signal(SIGVTALRM, SIG_IGN);  // one that is still on its way
}

}  // namespace muonwalk::sim
