#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "src/io/unfinished.hpp"

namespace muonwalk::sim {

/// Takes back what the program that started this one has done to signals and a new program inherits: no signal is
/// blocked from here on, and SIGCHLD, SIGPIPE and SIGTERM do what they do by default. To be called first of all in
/// main, before there are threads or handlers; a second call does nothing.
///
/// What stays ignored is what somebody wanted to be ignored: SIGHUP, by nohup, and SIGINT and SIGQUIT, by a shell that
/// started the program in the background (`lesson &` in a script), so that Ctrl-C ends what runs in the foreground and
/// not this. SIGTERM still ends it.
void reset_inherited_signals();

/// From here on Ctrl-C (and SIGTERM, SIGHUP and SIGQUIT, what a terminal and a system say "end" with) ends the program:
/// `first` is called, all that is unfinished is removed (src/io/unfinished.hpp), `sentence` goes to standard error, and
/// the exit code is 3. Signals that are ignored stay so. Where nobody reads the output any more (SIGPIPE), the same is
/// removed, and the program dies of the signal without a word, as programs do in a pipe. A limit on the size of files
/// (SIGXFSZ) becomes an error of the write, which has a sentence of its own. To be called by the main thread.
void end_on_signals(const std::string& sentence, void (*first)() = nullptr);

/// From here on the first Ctrl-C is a request: it sets `asked` to 1, `sentence` goes to standard error, and the program
/// goes on. The next one ends it, as end_on_signals says, which has to be called before. SIGTERM is a request as well,
/// and stays one however often it comes: programs that end others, such as `timeout`, may send it twice, and have
/// SIGKILL for those that don't listen. SIGHUP and SIGQUIT end the program at once. To be called by the main thread.
void take_requests(std::atomic<int>& asked, const std::string& sentence);

/// Nobody looks at `asked` any more: if take_requests was last called for it, every signal ends the program again.
void take_no_requests(const std::atomic<int>& asked);

/// From here on the program ends without a sentence when it is interrupted: another process says it.
void end_without_a_word();

/// In a process that was forked: those signals are somebody else's business.
void ignore_end_signals();

/// Calls what end_on_signals was given, removes what is unfinished, writes `sentence`, and exits with 3.
[[noreturn]] void end_with(const char* sentence);

/// While it lives, these signals wait: around a fork, or around a write that has to be whole. For the main thread.
class InterruptHold : public SignalHold {
 public:
  /// The hold begins here and ends with the object.
  InterruptHold();
};

/// Calls `write`, which writes files while a run goes on or at its end, during an InterruptHold. What can't be written
/// then, because a disk is full by now, has broken on the way: throws RunError with the sentence of the UsageError. So
/// a program ends with exit code 3, and with 2 where it refuses a path before the run.
void write_or_fail(const std::function<void()>& write);

/// In a notebook Jupyter's button *Interrupt* sends SIGINT to the kernel, which dies of it where nobody is prepared.
/// Once this was called, an idle kernel takes no notice, whatever handler it had, which comes back when the library
/// goes; and work in an InterruptibleWork ends with a sentence. To be called when the notebook's library is loaded; a
/// notebook looks it up by its name, in the cell that loads the library.
extern "C" void muonwalk_let_work_be_interrupted();

/// While one lives, SIGINT asks the work in its scope to end, and does nothing else; afterwards signals are as they
/// were before. One within another belongs to the same work. Without muonwalk_let_work_be_interrupted it does nothing.
/// For the thread that runs a cell.
class InterruptibleWork {
 public:
  /// The work begins here; nobody has asked yet.
  InterruptibleWork();
  /// The work has ended, in whatever way.
  ~InterruptibleWork();
  InterruptibleWork(const InterruptibleWork&) = delete;
  InterruptibleWork& operator=(const InterruptibleWork&) = delete;

  /// Somebody has asked the work to end. Any thread may look.
  static bool asked_to_end();

  /// Throws RunError with a sentence when somebody has asked.
  static void end_if_asked();
};

}  // namespace muonwalk::sim
