#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace muonwalk::testing {

/// A terminal of a test's own. Tests that need one stand in the suite "on a terminal" (on_a_terminal in
/// tests/CMakeLists.txt) and return where `open` is false: some systems have none, such as a container without
/// /dev/pts.
class PseudoTerminal {
 public:
  PseudoTerminal() : reader_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (reader_ >= 0 && ::grantpt(reader_) == 0 && ::unlockpt(reader_) == 0)
      file_ = ::open(::ptsname(reader_), O_RDWR | O_NOCTTY);
    if (!open()) std::puts("skipped: this system gives no pseudo-terminal (is /dev/pts mounted?)");
  }
  ~PseudoTerminal() {
    ::close(file_);
    ::close(reader_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  bool open() const { return file_ >= 0; }
  /// What programs write to.
  int file() const { return file_; }
  /// Its path, for a program that opens it by itself.
  std::string path() const { return ::ptsname(reader_); }
  /// What has been written to it since the last time.
  std::string written() const { return read_to_mark(file_, reader_); }

  /// All that comes out of `reader` before a mark that is written to `file` last.
  static std::string read_to_mark(int file, int reader) {
    std::string all;
    if (::write(file, "|", 1) != 1) return "(nothing can be written to it)";
    for (char next = 0; ::read(reader, &next, 1) == 1 && next != '|';) all += next;
    return all;
  }

 private:
  int reader_, file_ = -1;
};

}  // namespace muonwalk::testing
