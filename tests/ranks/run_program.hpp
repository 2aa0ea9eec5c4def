#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace muonwalk::testing {

/// How a program ended and what it printed.
struct Outcome {
  int exit_code = -1;      ///< −1 when a signal ended it
  int signal = 0;          ///< the signal that ended it; 0 for none
  bool timed_out = false;  ///< it was still running at the limit, and was killed
  double seconds = 0;      ///< from start to end
  std::string out;         ///< standard output
  std::string err;         ///< standard error
};

/// A program that runs in a session of its own, so that everything it leaves behind can be found and ended.
class Program {
 public:
  /// Starts `command` (command[0] is its path). `prepare` runs in the child, just before the program does. Signals are
  /// as a shell's foreground job has them. Throws std::runtime_error when it can't be started.
  explicit Program(const std::vector<std::string>& command, const std::function<void()>& prepare = nullptr);
  /// Kills whatever is left of the session.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The process that was started: a lesson's parent. Its session and its process group have the same number.
  pid_t pid() const { return pid_; }

  /// Waits until the standard output holds `text`; false when the program ended or `limit_seconds` passed before.
  bool wait_for_output(const std::string& text, double limit_seconds);
  /// The same for the standard error.
  /// @{
  std::string error_so_far() const;
  bool wait_for_error(const std::string& text, double limit_seconds);
  /// @}
  /// Waits for the end. At the limit the whole session is killed.
  Outcome wait(double limit_seconds);

 private:
  bool poll_end();
  bool wait_for_text(std::FILE* file, const std::string& text, double limit_seconds);

  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;
  std::FILE* err_ = nullptr;
  double started_ = 0;
  bool ended_ = false;
  int status_ = 0;
  double ended_at_ = 0;
};

/// Runs a program to its end.
Outcome run_program(const std::vector<std::string>& command, double limit_seconds,
                    const std::function<void()>& prepare = nullptr);
/// The same of a lesson with options, for as long as the longest one takes on a busy machine.
Outcome run_lesson(const std::string& program, std::vector<std::string> options);

/// "with code 3", "by signal 9", "not within 120 s": how it ended, for messages.
std::string end_text(const Outcome& outcome);

/// The processes of a session that have not ended (zombies have).
std::vector<pid_t> processes_of_session(pid_t session);
/// The processes whose parent is `pid`, by rising number.
std::vector<pid_t> children_of(pid_t pid);

/// The text as lines, without their line ends.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace muonwalk::testing
