#include "sim/cluster/rank_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sim/cluster/interrupt.hpp"

namespace muonwalk::sim {

std::string signal_text(int signal) {
#ifdef __GLIBC__
  const char* name = sigabbrev_np(signal);
#else
  const char* name = nullptr;
#endif
  return name != nullptr ? fmt::format("{} (SIG{})", signal, name) : fmt::format("{}", signal);
}

RankProcess& RankProcess::operator=(RankProcess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = other.pid_;
  pipe_ = std::exchange(other.pipe_, -1);
  reader_ = std::move(other.reader_);
  steps_ = std::move(other.steps_);
  open_step_ = std::move(other.open_step_);
  ended_ = std::exchange(other.ended_, true);
  failure_ = std::move(other.failure_);
  status_ = other.status_;
  stop_signal_ = other.stop_signal_;
  return *this;
}

void RankProcess::leave_to_parent() {
  ended_ = true;
  end();
}

void RankProcess::read_records() {
  while (pipe_ >= 0) {
    const auto [place, bytes] = reader_.room();
    const ssize_t got = read(pipe_, place, bytes);
    if (got > 0) {
      reader_.took(static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    close(pipe_);  // end of file: the rank is gone
    pipe_ = -1;
  }
  for (Record& record : reader_.take()) sort_in(std::move(record));
}

void RankProcess::sort_in(Record record) {
  if (std::holds_alternative<EndOfStep>(record)) {
    steps_.push_back(std::move(open_step_));
    open_step_.clear();
  } else if (auto* failed = std::get_if<Failed>(&record)) {
    failure_ = std::move(*failed);
  } else {
    open_step_.push_back(std::move(record));
  }
}

void RankProcess::observe() {
  if (ended_) return;
  const InterruptHold hold;  // once it is waited for, its number may be another process's: no handler may kill it then
  int status = 0;
  pid_t answer = 0;
  while ((answer = waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED)) == pid_) {
    if (WIFSTOPPED(status)) {
      stop_signal_ = WSTOPSIG(status);
    } else if (WIFCONTINUED(status)) {
      stop_signal_ = 0;
    } else {
      ended_with(status);
      return;
    }
  }
  // Somebody else has waited for it: a library, or a system that was told to forget children. The number may be another
  // process's by now, and must never get a signal.
  if (answer < 0 && errno == ECHILD) ended_with(kUnknownStatus);
}

void RankProcess::ended_with(int status) {
  ended_ = true;
  status_ = status;
  forget_rank_process(pid_);
}

void RankProcess::end() {
  observe();                  // what is no longer a child gets no signal
  if (!ended_ && pid_ > 0) {  // a signal to no process in particular would reach all of them
    const InterruptHold hold;
    kill(pid_, SIGKILL);
    int status = kUnknownStatus;
    pid_t answer = 0;
    while ((answer = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
    }
    ended_with(answer == pid_ ? status : kUnknownStatus);
  }
  if (pipe_ >= 0) close(pipe_);
  pipe_ = -1;
}

bool RankProcess::wait_for_end(double seconds) {
  const double deadline = monotonic_seconds() + seconds;
  for (observe(); !ended_ && monotonic_seconds() < deadline; observe()) usleep(500);
  return ended_;
}

double RankProcess::cpu_seconds() const {
#ifndef __linux__
  return 0;  // the processor time of another process has no portable name
#else
  clockid_t clock{};
  timespec used{};
  if (ended_ || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
#endif
}

bool RankProcess::wants_processor() const {
  if (ended_) return false;
  std::FILE* file = std::fopen(fmt::format("/proc/{}/stat", pid_).c_str(), "re");
  if (file == nullptr) return false;
  char text[256] = {};  // "4711 (name) S …"; the name may hold anything, a parenthesis too
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const std::size_t end_of_name = std::string(text, length).rfind(") ");
  return end_of_name != std::string::npos && (text[end_of_name + 2] == 'R' || text[end_of_name + 2] == 'D');
}

}  // namespace muonwalk::sim
