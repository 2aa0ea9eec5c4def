#include "sim/cluster/interrupt.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "sim/cluster/options.hpp"

namespace muonwalk::sim {
namespace {

// A handler may touch little more than this: fixed memory, kill, waitpid, write and _exit.
std::atomic<pid_t> registered[kMostRanks];
char message[256];
char program_name[128];
pthread_t main_thread;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

[[noreturn]] void end_ranks_and_exit(const char* last_words) {
  for (auto& pid : registered) {
    if (pid <= 0) continue;
    if (waitpid(pid, nullptr, WNOHANG) == 0)
      kill(pid, SIGKILL);  // still our child, so the number is still its own
    else
      pid = 0;
  }
  for (auto& pid : registered)
    if (pid > 0) waitpid(pid, nullptr, 0);
  if (write(STDERR_FILENO, last_words, std::strlen(last_words)) < 0) _exit(3);  // nobody hears it; the end is the same
  _exit(3);
}

void end_everything(int signal) {
  // The system picks any thread. Only the main one knows when an interrupt has to wait (InterruptHold).
  if (pthread_equal(pthread_self(), main_thread) == 0) {
    pthread_kill(main_thread, signal);
    return;
  }
  end_ranks_and_exit(message);
}

// An exception that nobody can catch, because a library threw it in a thread of its own: Gloo's event loop does when a
// peer of the same process is gone before it has answered.
void end_after_uncaught_exception() {
  std::string what = "an exception of an unknown kind";
  try {
    if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  const std::string text =
      std::string(program_name) + ": a thread of a library failed: " + what.substr(0, what.find('\n')) + "\n";
  end_ranks_and_exit(text.c_str());
}

sigset_t interrupt_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kSignals) sigaddset(&set, signal);
  return set;
}

}  // namespace

void handle_interrupts(const std::string& program) {
  const std::string text = program + ": interrupted; every rank was ended and nothing was left behind\n";
  std::strncpy(message, text.c_str(), sizeof message - 1);
  std::strncpy(program_name, program.c_str(), sizeof program_name - 1);
  std::set_terminate(end_after_uncaught_exception);
  struct sigaction action {};
  main_thread = pthread_self();
  action.sa_handler = end_everything;
  action.sa_flags = SA_RESTART;
  action.sa_mask = interrupt_signals();
  for (int signal : kSignals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // under nohup, a hangup stays ignored
  }
}

void end_program(const std::string& sentence) {
  end_ranks_and_exit((std::string(program_name) + ": " + sentence + "\n").c_str());
}

void register_rank_process(pid_t pid) {
  for (auto& place : registered) {
    pid_t empty = 0;
    if (place.compare_exchange_strong(empty, pid)) return;
  }
}

void forget_rank_process(pid_t pid) {
  for (auto& place : registered) {
    pid_t found = pid;
    if (place.compare_exchange_strong(found, 0)) return;
  }
}

void leave_interrupts_to_the_parent() {
  for (auto& place : registered) place = 0;
  for (int number : kSignals) signal(number, SIG_IGN);
  std::set_terminate(std::abort);  // the parent sees the signal and says so
}

InterruptHold::InterruptHold() {
  static_assert(sizeof(sigset_t) <= sizeof previous_);
  const sigset_t set = interrupt_signals();
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &set, &previous);
  std::memcpy(previous_, &previous, sizeof previous);
}

InterruptHold::~InterruptHold() {
  sigset_t previous;
  std::memcpy(&previous, previous_, sizeof previous);
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

}  // namespace muonwalk::sim
