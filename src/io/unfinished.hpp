#pragma once

#include <initializer_list>
#include <string>

namespace muonwalk {

/// The one place that knows what a run has begun and not finished: files that still have a provisional name, and
/// folders that it has made. Whatever is left of them goes when the program ends: by itself (atexit), or in the handler
/// of a signal, which calls remove_unfinished. Only SIGKILL comes before that, and for files only where the file system
/// has no unnamed ones (FileBeside). A process that is forked has nothing unfinished; its parent keeps what is.
struct Unfinished;

/// Remembers a file that is removed unless it is forgotten before, or a folder that is removed where it is empty then.
/// To be called with signals held (SignalHold), together with what makes it.
Unfinished* remember_unfinished(const std::string& path, bool folder);
/// It is finished, or gone already. A null pointer is nothing.
void forget_unfinished(Unfinished* one);

/// Removes all files that are not finished, and the folders that are empty. May be called by the handler of a signal.
void remove_unfinished();

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
  unsigned char previous_[128];  // a sigset_t
};

}  // namespace muonwalk
