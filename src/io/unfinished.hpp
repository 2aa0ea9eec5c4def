#pragma once

#include <signal.h>
#include <sys/types.h>

#include <initializer_list>
#include <string>

namespace muonwalk {

/// The one place that knows what a run has begun and not finished: files that still have a provisional name, and
/// folders that it has made. Whatever is left of them goes when the program ends: by itself (atexit), or in the handler
/// of a signal, which calls remove_unfinished. Only SIGKILL comes before that, and for files only where the file system
/// has no unnamed ones (FileBeside). A process that is forked has nothing unfinished at first. What it begins then, its
/// parent can remove (remove_unfinished_of), so the parent may kill it.
struct Unfinished;

/// Remembers a file that is removed unless it is forgotten before, or a folder that is removed where it is empty then.
/// To be called with signals held (SignalHold), together with what makes it; for a file, before it is made. Null, and
/// not remembered, where 1,024 of them are unfinished already.
Unfinished* remember_unfinished(const std::string& path, bool folder);
/// It is finished, or gone already. A null pointer is nothing.
void forget_unfinished(Unfinished* one);

/// Removes all files that are not finished, and the folders that are empty. May be called by the handler of a signal.
void remove_unfinished();

/// The same for a process that has ended, and that this one had forked. May be called by the handler of a signal.
void remove_unfinished_of(pid_t process);

/// True for the provisional name that an unfinished file has, ".muonwalk-PID-N.partial", with or without folders before
/// it. A run that was killed may have left one: it is nobody's output.
bool is_unfinished_name(const std::string& path);

constexpr char kUnfinishedBegin[] = ".muonwalk-";
constexpr char kUnfinishedEnd[] = ".partial";

/// While it lives, no signal reaches this thread, so that making a thing and remembering it are one.
class SignalHold {
 public:
  SignalHold();
  /// Holds back these signals only.
  explicit SignalHold(std::initializer_list<int> signals);
  ~SignalHold();
  SignalHold(const SignalHold&) = delete;
  SignalHold& operator=(const SignalHold&) = delete;

 private:
  sigset_t previous_;
};

}  // namespace muonwalk
