// What signals do to a program: those that it inherits, and those that end it.

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "sim/terminal/end_on_signals.hpp"
#include "src/io/unfinished.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/terminal/in_child.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kOtherSignals[] = {SIGCHLD, SIGPIPE, SIGUSR1, SIGUSR2};

using Handler = void (*)(int);

Handler handler_of(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}

void some_handler(int) {}

// As a shell starts a program.
void default_signals() {
  for (int number : kEndSignals) signal(number, SIG_DFL);
  for (int number : kOtherSignals) signal(number, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
}

int blocked_signals() {
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, nullptr, &set);
  int count = 0;
  for (int number = 1; number < 32; ++number) count += sigismember(&set, number);
  return count;
}

void first() { say("first\n"); }

std::atomic<int> calls_of_first{0};
std::atomic<bool> another_thread_speaks{false};

}  // namespace

TEST_CASE(
    "reset_inherited_signals: three are no longer ignored and nothing is blocked; all else stays, and so does what "
    "comes later") {
  for (const bool ignored : {false, true})
    for (const bool blocked : {false, true}) {
      CAPTURE(ignored);
      CAPTURE(blocked);
      const Ended ended = in_child([&] {
        default_signals();
        if (ignored) {
          for (int number : kEndSignals) signal(number, SIG_IGN);
          for (int number : kOtherSignals) signal(number, SIG_IGN);
        }
        sigset_t all;
        sigfillset(&all);
        if (blocked) sigprocmask(SIG_SETMASK, &all, nullptr);
        reset_inherited_signals();
        for (int number : {SIGCHLD, SIGPIPE, SIGTERM})
          if (handler_of(number) != SIG_DFL) return 1;
        for (int number : {SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
          if (handler_of(number) != (ignored ? SIG_IGN : SIG_DFL)) return 2;
        if (blocked_signals() != 0) return 3;

        // A second call finds what the program has set up by then.
        signal(SIGTERM, SIG_IGN);
        sigprocmask(SIG_SETMASK, &all, nullptr);
        reset_inherited_signals();
        return handler_of(SIGTERM) == SIG_IGN && blocked_signals() > 20 ? 0 : 4;
      });
      CHECK(ended.exit_code == 0);
    }
  const Ended handled = in_child([] {
    for (int number : {SIGCHLD, SIGPIPE, SIGTERM}) signal(number, some_handler);
    reset_inherited_signals();
    for (int number : {SIGCHLD, SIGPIPE, SIGTERM})
      if (handler_of(number) != some_handler) return 1;
    return 0;
  });
  CHECK(handled.exit_code == 0);
}

TEST_CASE(
    "end_on_signals: each of the four ends the program once, whoever else signals meanwhile, and takes what is "
    "unfinished along") {
  for (int number : kEndSignals)
    for (const bool with_first : {false, true}) {
      CAPTURE(number);
      const TemporaryFolder folder;
      const Ended ended = in_child([&] {
        default_signals();
        end_on_signals("the sentence", with_first ? [] {
          say("first\n");
          for (int other : kEndSignals) raise(other);  // wait until the end, which comes before
        } : static_cast<void (*)()>(nullptr));
        const std::string path = folder.file("begun");
        std::ofstream(path) << "half";
        remember_unfinished(path, false);
        raise(number);
        return 0;
      });
      CHECK(ended.exit_code == 3);
      CHECK(ended.err == std::string(with_first ? "first\n" : "") + "the sentence\n");
      CHECK(folder.names().empty());
    }
}

TEST_CASE("end_on_signals: a signal that is ignored stays so, and a sentence of any length is one that fits") {
  for (int number : kEndSignals) {
    const Ended ended = in_child([&] {
      default_signals();
      signal(number, SIG_IGN);
      end_on_signals("the sentence", first);
      raise(number);
      for (int other : kEndSignals)
        if ((handler_of(other) == SIG_IGN) != (other == number)) return 1;
      return 7;
    });
    CHECK(ended.exit_code == 7);
    CHECK(ended.err.empty());
  }
  const Ended lengthy = in_child([] {
    default_signals();
    end_on_signals(std::string(1000, 'x'));
    raise(SIGTERM);
    return 0;
  });
  CHECK(lengthy.exit_code == 3);
  CHECK(lengthy.err == std::string(255, 'x'));
}

TEST_CASE(
    "end_on_signals: SIGPIPE ends the program by itself, without a word and with nothing left; SIGXFSZ is left to the "
    "write") {
  const TemporaryFolder folder;
  const Ended ended = in_child([&] {
    default_signals();
    end_on_signals("the sentence", first);
    const std::string path = folder.file("begun");
    std::ofstream(path) << "half";
    remember_unfinished(path, false);
    raise(SIGXFSZ);
    if (handler_of(SIGXFSZ) != SIG_IGN || handler_of(SIGUSR1) != SIG_DFL) return 1;
    raise(SIGPIPE);
    return 0;
  });
  CHECK(ended.signal == SIGPIPE);
  CHECK(ended.err.empty());
  CHECK(folder.names().empty());

  const Ended ignored = in_child([] {
    default_signals();
    signal(SIGPIPE, SIG_IGN);
    end_on_signals("the sentence", first);
    raise(SIGPIPE);
    return 7;
  });
  CHECK(ignored.exit_code == 7);
}

TEST_CASE(
    "take_requests: the first of two signals asks, and whatever it has interrupted goes on; another Ctrl-C ends the "
    "program, and so do SIGHUP and SIGQUIT at any time") {
  for (int number : kEndSignals)
    for (int second : kEndSignals) {
      CAPTURE(number);
      CAPTURE(second);
      const bool asks = number == SIGINT || number == SIGTERM;
      const Ended ended = in_child([&] {
        default_signals();
        end_on_signals("the sentence", first);
        static std::atomic<int> asked{0};
        take_requests(asked, "heard");
        errno = 77;
        raise(number);  // the handler is done when it returns
        if (errno != 77) return 1;
        if (asked != 1) return 2;
        say("goes on\n");
        raise(second);
        return asked == 1 ? 0 : 4;
      });
      CHECK(ended.exit_code == (asks && second == SIGTERM ? 0 : 3));
      CHECK(ended.err ==
            std::string(asks ? "heard\ngoes on\n" : "") + (asks && second == SIGTERM ? "" : "first\nthe sentence\n"));
    }
}

TEST_CASE("take_requests: a request is the main thread's, comes when it lets go, and is heard by the last who asked") {
  const Ended ended = in_child([] {
    default_signals();
    end_on_signals("the sentence");
    static std::atomic<int> earlier{0}, asked{0};
    take_requests(earlier, "too early");
    take_requests(asked, "heard");
    take_no_requests(earlier);  // which is nobody's any more
    std::atomic<bool> signalled{false};
    std::thread other;
    {
      const InterruptHold hold;
      other = std::thread([&] {
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, nullptr);
        raise(SIGINT);  // to this thread
        signalled = true;
      });
      while (!signalled) usleep(100);
      if (asked != 0) return 1;
    }
    other.join();
    if (asked != 1 || earlier != 0) return 2;
    take_no_requests(asked);
    raise(SIGTERM);
    return 3;
  });
  CHECK(ended.exit_code == 3);
  CHECK(ended.err == "heard\nthe sentence\n");
}

TEST_CASE("take_requests: where nobody can hear the sentence, the request counts all the same") {
  const Ended closed = in_child([] {
    default_signals();
    end_on_signals("the sentence");
    static std::atomic<int> asked{0};
    take_requests(asked, "heard");
    close(STDERR_FILENO);
    raise(SIGINT);
    return asked == 1 ? 7 : 1;
  });
  CHECK(closed.exit_code == 7);
}

TEST_CASE("InterruptHold: a signal that another thread gets is the main thread's, and waits until that one lets go") {
  for (int number : kEndSignals) {
    const Ended ended = in_child([&]() -> int {
      default_signals();
      end_on_signals("the sentence");
      std::atomic<bool> held{false}, signalled{false};
      std::thread other([&] {
        while (!held) usleep(100);
        raise(number);  // to this thread
        signalled = true;
        while (true) pause();
      });
      {
        const InterruptHold hold;
        held = true;
        while (!signalled) usleep(100);
        usleep(1000);
        say("let go\n");
      }
      say("not reached\n");
      _exit(9);
    });
    CHECK(ended.exit_code == 3);
    CHECK(ended.err == "let go\nthe sentence\n");
  }
}

TEST_CASE(
    "end_with: of two threads that end the program the first one's sentence counts; one that comes again is not kept "
    "waiting") {
  const Ended two = in_child([] {
    default_signals();
    end_on_signals("the sentence", [] {
      another_thread_speaks = true;
      usleep(50000);  // time enough for the other sentence
    });
    std::thread other([] {
      while (!another_thread_speaks) usleep(100);
      end_with("of the other\n");
    });
    end_with("of the first\n");
    return 0;
  });
  CHECK(two.exit_code == 3);
  CHECK(two.err == "of the first\n");

  const Ended again = in_child([] {
    default_signals();
    end_on_signals("the sentence", [] {
      if (++calls_of_first == 1) end_with("again\n");
    });
    end_with("once\n");
    return 0;
  });
  CHECK(again.exit_code == 3);
  CHECK(again.err == "again\n");
}

TEST_CASE("end_with: where nobody can hear the sentence, the exit code is the same") {
  const Ended closed = in_child([] {
    close(STDERR_FILENO);
    end_with("unheard\n");
    return 0;
  });
  CHECK(closed.exit_code == 3);
}

TEST_CASE("ignore_end_signals: the four, and no others") {
  const Ended ended = in_child([] {
    default_signals();
    ignore_end_signals();
    for (int number : kEndSignals)
      if (handler_of(number) != SIG_IGN) return 1;
    for (int number : kOtherSignals)
      if (handler_of(number) != SIG_DFL) return 2;
    return 0;
  });
  CHECK(ended.exit_code == 0);
}
