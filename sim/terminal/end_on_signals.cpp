#include "sim/terminal/end_on_signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "sim/terminal/progress_line.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

// A handler may touch little more than this: fixed memory, and what the system allows it to call.
char last_words[256];
char words_of_request[256];
std::atomic<std::atomic<int>*> request{nullptr};
pthread_t main_thread;
std::atomic<pthread_t> ends_the_program{};
void (*before_end)() = nullptr;
constexpr std::initializer_list<int> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// The system picks any thread. Only the main one knows when an interrupt has to wait (InterruptHold).
bool handed_to_main_thread(int number) {
  if (pthread_equal(pthread_self(), main_thread) != 0) return false;
  pthread_kill(main_thread, number);
  return true;
}

// The first of the signals that may ask, and every SIGTERM.
bool is_a_request(int number) {
  std::atomic<int>* asked = request;
  if (asked == nullptr || (number != SIGINT && number != SIGTERM)) return false;
  if (asked->exchange(1) != 0) return number == SIGTERM;
  const int before = errno;  // of whatever was interrupted, and goes on
  clear_progress_line();
  const bool heard = write(STDERR_FILENO, words_of_request, std::strlen(words_of_request)) >= 0;
  static_cast<void>(heard);  // the request counts all the same
  errno = before;
  return true;
}

void end_everything(int number) {
  if (!handed_to_main_thread(number) && !is_a_request(number)) end_with(last_words);
}

void die_of(int number) {
  remove_unfinished();
  clear_progress_line();
  signal(number, SIG_DFL);
  raise(number);  // comes when the handler has returned
}

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kSignals) sigaddset(&set, number);
  return set;
}

std::atomic<bool> works_can_be_interrupted{false};
std::atomic<bool> end_is_asked{false};  // lock-free, so that a signal may set it
static_assert(std::atomic<bool>::is_always_lock_free);
int living_works = 0;                // all on the thread that runs the cell
struct sigaction handler_before {};  // the outermost work

void ask(int) { end_is_asked = true; }

// A kernel's own handler, which ends it. It comes back when this library goes.
struct HandlerOfKernel {
  struct sigaction before = {};
  ~HandlerOfKernel() { sigaction(SIGINT, &before, nullptr); }
};

}  // namespace

void reset_inherited_signals() {
  static bool done = false;
  if (done) return;  // a second lesson of the same program finds the handlers of the first
  done = true;
  // SIGCHLD ignored would make the system forget how a rank ended. SIGPIPE ignored would turn "nobody reads any more"
  // from a quiet end into an error. SIGTERM ignored has no use that anybody relies on, and would leave only SIGKILL.
  for (int number : {SIGCHLD, SIGPIPE, SIGTERM})
    if (is_ignored(number)) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void end_with(const char* sentence) {
  // Two threads may have a reason to end at once, as event loops do that meet the same stranger: the first counts.
  pthread_t nobody{};
  if (!ends_the_program.compare_exchange_strong(nobody, pthread_self()) && pthread_equal(nobody, pthread_self()) == 0)
    while (true) pause();
  if (before_end != nullptr) before_end();
  remove_unfinished();
  clear_progress_line();
  if (write(STDERR_FILENO, sentence, std::strlen(sentence)) < 0) _exit(3);  // nobody hears it; the end is the same
  _exit(3);
}

void end_on_signals(const std::string& sentence, void (*first)()) {
  std::strncpy(last_words, (sentence + "\n").c_str(), sizeof last_words - 1);
  before_end = first;
  main_thread = pthread_self();
  struct sigaction action {};
  action.sa_handler = end_everything;
  action.sa_flags = SA_RESTART;
  action.sa_mask = end_signals();
  for (int number : kSignals)
    if (!is_ignored(number)) sigaction(number, &action, nullptr);  // under nohup, a hangup stays ignored
  action.sa_handler = die_of;
  if (!is_ignored(SIGPIPE)) sigaction(SIGPIPE, &action, nullptr);
  signal(SIGXFSZ, SIG_IGN);
}

void take_requests(std::atomic<int>& asked, const std::string& sentence) {
  const InterruptHold hold;
  std::strncpy(words_of_request, (sentence + "\n").c_str(), sizeof words_of_request - 1);
  request = &asked;
}

void take_no_requests(const std::atomic<int>& asked) {
  const InterruptHold hold;
  if (request == &asked) request = nullptr;
}

void end_without_a_word() { last_words[0] = '\0'; }

void ignore_end_signals() {
  for (int number : kSignals) signal(number, SIG_IGN);
}

InterruptHold::InterruptHold() : SignalHold(kSignals) {}

void write_or_fail(const std::function<void()>& write) {
  try {
    const InterruptHold hold;
    write();
  } catch (const UsageError& error) {
    throw RunError(error.what());
  }
}

extern "C" void muonwalk_let_work_be_interrupted() {
  static HandlerOfKernel kernels;
  if (!works_can_be_interrupted.exchange(true)) sigaction(SIGINT, nullptr, &kernels.before);
  signal(SIGINT, SIG_IGN);
}

InterruptibleWork::InterruptibleWork() {
  if (!works_can_be_interrupted || living_works++ > 0) return;
  end_is_asked = false;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &handler_before);
}

InterruptibleWork::~InterruptibleWork() {
  if (living_works == 0 || --living_works > 0) return;
  sigaction(SIGINT, &handler_before, nullptr);
  end_is_asked = false;
}

bool InterruptibleWork::asked_to_end() { return end_is_asked; }

void InterruptibleWork::end_if_asked() {
  if (end_is_asked)
    throw RunError("interrupted: the ranks stopped in the middle of their work; begin the lesson again");
}

}  // namespace muonwalk::sim
