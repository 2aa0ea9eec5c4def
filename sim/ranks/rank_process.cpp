#include "sim/ranks/rank_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "sim/ranks/interrupt.hpp"
#include "src/errors.hpp"
#include "src/io/unfinished.hpp"

namespace muonwalk::sim {

std::string signal_text(int signal) {
#ifdef __GLIBC__
  const char* name = sigabbrev_np(signal);
#else
  const char* name = nullptr;
#endif
  return name != nullptr ? fmt::format("{} (SIG{})", signal, name) : fmt::format("{}", signal);
}

void RankProcess::leave_to_parent() {
  ended_ = true;
  end();
}

void RankProcess::take_news() {
  observe();  // before reading: whatever an ended process wrote is in the pipe by then
  read_records();
}

void RankProcess::read_records() {
  while (pipe_) {
    const auto [place, bytes] = reader_.room();
    const ssize_t got = read(pipe_.descriptor(), place, bytes);
    if (got > 0) {
      reader_.took(static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    pipe_.close();  // end of file: the rank is gone
  }
  sort_in(reader_.take());
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
  remove_unfinished_of(pid_);
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
  pipe_.close();
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
  return end_of_name != std::string::npos && std::string_view("RDTt").find(text[end_of_name + 2]) != std::string::npos;
}

Pipe open_pipe() {
  int ends[2];
  if (pipe(ends) != 0)
    throw RunError(fmt::format(
        "no pipe to the ranks could be opened: {}; allow more open files (ulimit -n) or ask for fewer ranks",
        strerror(errno)));
  for (int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return {OpenFile(ends[0]), OpenFile(ends[1])};
}

void require_no_other_threads() {
#ifdef __linux__
  std::error_code unreadable;
  std::ptrdiff_t threads = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/task", unreadable), end; !unreadable && entry != end;
       ++entry)
    ++threads;
  if (threads > 1)
    throw RunError(
        fmt::format("ranks that are processes have to be started before this program has threads, and it has {}; start "
                    "them earlier, or use --world fibers",
                    threads));
#endif
}

std::unique_ptr<RankProcess> fork_rank(int rank, int& records, const std::function<bool()>& first) {
  Pipe pipe = open_pipe();
  const InterruptHold hold;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    throw RunError(
        fmt::format("rank {} could not be started: the system allows no further process; allow more (ulimit -u) or ask "
                    "for fewer ranks",
                    rank));
  if (pid > 0) {
    fcntl(pipe.read_end.descriptor(), F_SETFL, O_NONBLOCK);
#ifdef F_SETPIPE_SZ
    fcntl(pipe.read_end.descriptor(), F_SETPIPE_SZ, 1 << 20);
#endif
    register_rank_process(pid);
    return std::make_unique<RankProcess>(pid, pipe.read_end.release());
  }
  leave_interrupts_to_the_parent();
  signal(SIGPIPE, SIG_IGN);
  if (first && !first()) _exit(3);
#ifdef __linux__  // elsewhere a rank notices the parent's end when it next writes to its pipe
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(3);  // it died before we asked to be told
  records = pipe.write_end.release();
  return nullptr;
}

}  // namespace muonwalk::sim
