#include "tests/ranks/run_program.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace muonwalk::testing {
namespace {

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Reads without moving the place at which the program writes: the file is shared with it.
std::string contents_of(std::FILE* file) {
  std::string text;
  char part[1 << 16];
  while (true) {
    const ssize_t got = pread(fileno(file), part, sizeof part, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

struct ProcessStatus {
  char state = 0;
  long parent = 0, session = 0;
};

std::vector<pid_t> processes_where(const std::function<bool(const ProcessStatus&)>& wanted) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (pid <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    // A process may end while it is read: getline then finds nothing, where an iterator would throw.
    std::string text;
    std::getline(file, text, '\0');
    const std::size_t name_end = text.rfind(')');  // the name in parentheses may hold anything
    if (name_end == std::string::npos) continue;
    std::istringstream fields(text.substr(name_end + 1));
    ProcessStatus status;
    long group = 0;
    fields >> status.state >> status.parent >> group >> status.session;
    if (wanted(status)) found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

[[noreturn]] void become(const std::vector<std::string>& command, std::FILE* out, std::FILE* err,
                         const std::function<void()>& prepare) {
  setsid();
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(fileno(out), STDOUT_FILENO);
  dup2(fileno(err), STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  fclose(out);
  fclose(err);
  for (int inherited = 3; inherited < 256; ++inherited)
    close(inherited);  // what ctest has open is not a file of the program's
  if (prepare) prepare();
  execv(words[0], words.data());
  const std::string sorry = command[0] + " could not be started: " + std::strerror(errno) + "\n";
  const ssize_t written = write(STDERR_FILENO, sorry.data(), sorry.size());
  _exit(written < 0 ? 126 : 127);
}

}  // namespace

Program::Program(const std::vector<std::string>& command, const std::function<void()>& prepare)
    : out_(std::tmpfile()), err_(std::tmpfile()), started_(now_seconds()) {
  if (out_ == nullptr || err_ == nullptr) throw std::runtime_error("no temporary file could be made");
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("no process could be started");
  if (pid_ == 0) become(command, out_, err_, prepare);
}

Program::~Program() {
  if (!ended_) wait(0);
  for (pid_t left : processes_of_session(pid_)) kill(left, SIGKILL);
  std::fclose(out_);
  std::fclose(err_);
}

bool Program::poll_end() {
  if (ended_) return true;
  const pid_t got = waitpid(pid_, &status_, WNOHANG);
  if (got != pid_) return false;
  ended_ = true;
  ended_at_ = now_seconds();
  return true;
}

std::string Program::error_so_far() const { return contents_of(err_); }

bool Program::wait_for_output(const std::string& text, double limit_seconds) {
  return wait_for_text(out_, text, limit_seconds);
}

bool Program::wait_for_error(const std::string& text, double limit_seconds) {
  return wait_for_text(err_, text, limit_seconds);
}

bool Program::wait_for_text(std::FILE* file, const std::string& text, double limit_seconds) {
  const double deadline = now_seconds() + limit_seconds;
  while (contents_of(file).find(text) == std::string::npos) {
    if (poll_end() || now_seconds() > deadline) return contents_of(file).find(text) != std::string::npos;
    usleep(2000);
  }
  return true;
}

Outcome Program::wait(double limit_seconds) {
  const double deadline = now_seconds() + limit_seconds;
  Outcome outcome;
  while (!poll_end()) {
    if (now_seconds() > deadline) {
      outcome.timed_out = true;
      for (pid_t left : processes_of_session(pid_)) kill(left, SIGKILL);
      while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
      ended_ = true;
      ended_at_ = now_seconds();
      break;
    }
    usleep(2000);
  }
  outcome.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  outcome.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  outcome.seconds = ended_at_ - started_;
  outcome.out = contents_of(out_);
  outcome.err = contents_of(err_);
  return outcome;
}

Outcome run_program(const std::vector<std::string>& command, double limit_seconds,
                    const std::function<void()>& prepare) {
  return Program(command, prepare).wait(limit_seconds);
}

Outcome run_lesson(const std::string& program, std::vector<std::string> options) {
  options.insert(options.begin(), program);
  return run_program(options, 240);
}

std::string end_text(const Outcome& outcome) {
  std::ostringstream text;
  if (outcome.timed_out)
    text << "not within " << outcome.seconds << " s";
  else if (outcome.signal != 0)
    text << "by signal " << outcome.signal;
  else
    text << "with code " << outcome.exit_code;
  return text.str();
}

std::vector<pid_t> processes_of_session(pid_t session) {
  return processes_where([session](const ProcessStatus& status) {
    return status.session == session && status.state != 'Z' && status.state != 'X';
  });
}

std::vector<pid_t> children_of(pid_t pid) {
  return processes_where([pid](const ProcessStatus& status) { return status.parent == pid; });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace muonwalk::testing
