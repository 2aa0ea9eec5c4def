// What the system may do to a file that is being written and rarely does: take less than it is given, be interrupted,
// fail to bring it to the disk; and to one that is read: hand out a part, be interrupted, end too soon. The library
// calls the functions below in place of the C library's.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"
#include "src/io/safetensors.hpp"
#include "src/io/unfinished.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

#if defined(__linux__)

namespace {

std::size_t most_a_write = 0;  // 0: as the system likes
std::size_t most_a_read = 0;   // 0: as the system likes
int writes = 0, reads = 0, flushes = 0;
int last_read = 0;   // 0: all are as usual; else the number of the read that ends
int error_then = 0;  // with which; 0: it finds the end of the file
bool flush_fails = false;
unsigned seen_modes = 0;           // all permissions that files had before they got others
bool reads_are_inherited = false;  // a file was read that a program started meanwhile would have

// What a flush met: the thing that it was for, and whether the file that is watched stood in its place.
struct Flush {
  struct stat of;
  bool in_place;
};
std::vector<Flush> met;
std::string watched;

bool close_fails = false;  // of regular files that are written
int failed_closes = 0, closed_again = 0;
int unheld = 0, held_steps = 0;  // steps of making a thing and remembering it, with and without signals held

void note_hold() {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  ++(sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGINT) == 1 ? held_steps : unheld);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, std::size_t count) {
  if (most_a_write == 0) return syscall(SYS_write, file, bytes, count);
  if (++writes % 3 == 0) {
    errno = EINTR;
    return -1;
  }
  return syscall(SYS_write, file, bytes, std::min(count, most_a_write));
}

ssize_t pread(int file, void* bytes, std::size_t count, off_t offset) {
  if (most_a_read == 0) return syscall(SYS_pread64, file, bytes, count, offset);
  reads_are_inherited = reads_are_inherited || (fcntl(file, F_GETFD) & FD_CLOEXEC) == 0;
  ++reads;
  if (last_read > 0 && reads >= last_read) {
    errno = error_then;
    return error_then == 0 ? 0 : -1;
  }
  if (reads % 3 == 0) {
    errno = EINTR;
    return -1;
  }
  return syscall(SYS_pread64, file, bytes, std::min(count, most_a_read), offset);
}

int fsync(int file) {
  ++flushes;
  struct stat status = {};
  if (fstat(file, &status) == 0 && !watched.empty())
    met.push_back({status, access(watched.c_str(), F_OK) == 0 && read_text(watched) == "whole"});
  if (!flush_fails) return static_cast<int>(syscall(SYS_fsync, file));
  errno = EIO;
  return -1;
}

int close(int file) {
  struct stat status = {};
  const bool is_open = fstat(file, &status) == 0;
  if (close_fails && !is_open) ++closed_again;
  const bool fails =
      close_fails && is_open && S_ISREG(status.st_mode) && (fcntl(file, F_GETFL) & O_ACCMODE) == O_WRONLY;
  if (fails) ++failed_closes;
  const int result = static_cast<int>(syscall(SYS_close, file));
  if (!fails) return result;
  errno = EIO;
  return -1;
}

#ifdef __GLIBC__
int mkdir(const char* path, mode_t mode) noexcept {
  note_hold();
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (muonwalk::is_unfinished_name(to)) note_hold();
  return static_cast<int>(syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

int fchmod(int file, mode_t mode) noexcept {
  struct stat status = {};
  if (fstat(file, &status) == 0) seen_modes |= status.st_mode & 0777u;
  return static_cast<int>(syscall(SYS_fchmod, file, mode));
}
#endif

}  // extern "C"

using namespace muonwalk;

TEST_CASE("FileBeside: a system that takes a few bytes at a time, and is interrupted, gets all of them in order") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + " ";
  writes = 0;
  most_a_write = 7;
  text_file_beside(folder.file("x"), text)->commit();
  most_a_write = 0;
  CHECK(writes > static_cast<int>(text.size()) / 7);
  CHECK(read_text(folder.file("x")) == text);
}

TEST_CASE(
    "read_safetensors: a system that gives a few bytes at a time; one that ends too soon, or fails, is a sentence") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  SafetensorsFile file;
  file.metadata = {{"format", "pt"}};
  for (const char* name : {"first", "second"}) {
    file.tensors.push_back({name, "U8", StoredType::other, {40}, {}});
    for (int i = 0; i < 40; ++i) file.tensors.back().bytes.push_back(static_cast<std::byte>(i + name[0]));
  }
  write_safetensors(path, file);
  most_a_read = 7;
  reads = 0;
  const SafetensorsFile read = read_safetensors(path);
  const int all = reads;
  CHECK(all > 30);
  CHECK_FALSE(reads_are_inherited);
  REQUIRE(read.tensors.size() == 2);
  for (std::size_t t = 0; t < 2; ++t) CHECK(read.tensors[t].bytes == file.tensors[t].bytes);
  for (const int error : {0, EIO})
    for (last_read = 1; last_read <= all; ++last_read) {
      reads = 0;
      error_then = error;
      const std::string sentence = usage_error([&] { read_safetensors(path); });
      CHECK(sentence == "can't read \"" + path + "\": " +
                            (error == 0 ? "it became shorter while it was read; save or download it again"
                                        : "Input/output error; check the path"));
    }
  most_a_read = 0;
  last_read = error_then = 0;
}

#ifdef __GLIBC__
TEST_CASE("FileBeside: before a new version has the permissions of the old one, it is for its owner alone") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const mode_t before = umask(0);
  for (const char* unnamed : {"on", "off"})
    for (const mode_t mode : {0600u, 0640u, 0666u}) {
      CAPTURE(unnamed);
      CAPTURE(mode);
      write_text(path, "old");
      REQUIRE(chmod(path.c_str(), mode) == 0);
      setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
      seen_modes = 0;
      text_file_beside(path, "new")->commit();
      CHECK(seen_modes == 0600u);
      struct stat status = {};
      REQUIRE(stat(path.c_str(), &status) == 0);
      CHECK((status.st_mode & 0777u) == mode);
    }
  unsetenv("MUONWALK_UNNAMED_FILES");
  umask(before);
}

TEST_CASE("files: no signal comes between a folder, or a name that is not to stay, and the memory of it") {
  const TemporaryFolder folder;
  unheld = held_steps = 0;
  make_folder("--save", folder.file("a/b"));
  CHECK(unheld == 0);
  const int folders = held_steps;
  CHECK(folders >= 2);
  write_text(folder.file("x"), "old");
  text_file_beside(folder.file("x"), "new")
      ->commit();  // takes a name that is not to stay, where files have none before
  CHECK(unheld == 0);
}
#endif

TEST_CASE("FileBeside: first the file is brought to the disk, all of it, and then the folder in which it stands") {
  const TemporaryFolder folder;
  struct stat of_folder = {}, of_file = {};
  REQUIRE(stat(folder.path().c_str(), &of_folder) == 0);
  for (const char* unnamed : {"on", "off"})
    for (const bool replaces : {false, true}) {
      CAPTURE(unnamed);
      CAPTURE(replaces);
      setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
      const std::string path = folder.file(replaces ? "old" : std::string("new ") + unnamed);
      if (replaces) write_text(path, "what was there");
      met.clear();
      watched = path;
      text_file_beside(path, "whole")->commit();
      watched.clear();
      REQUIRE(met.size() == 2);
      REQUIRE(stat(path.c_str(), &of_file) == 0);
      CHECK(met[0].of.st_ino == of_file.st_ino);
      CHECK(met[0].of.st_size == 5);
      CHECK_FALSE(met[0].in_place);
      CHECK(met[1].of.st_ino == of_folder.st_ino);
      CHECK(met[1].in_place);
    }
  unsetenv("MUONWALK_UNNAMED_FILES");
}

TEST_CASE("FileBeside: a file that the system fails to close is not a success, and is not closed once more") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  for (const char* unnamed : {"on", "off"}) {
    CAPTURE(unnamed);
    write_text(path, "what was there");
    setenv("MUONWALK_UNNAMED_FILES", unnamed, 1);
    failed_closes = closed_again = 0;
    close_fails = true;
    const std::string sentence = usage_error([&] { text_file_beside(path, "new")->commit(); });
    close_fails = false;
    CHECK(sentence == "can't write \"" + path + "\": Input/output error; choose another path");
    CHECK(failed_closes == 1);
    CHECK(closed_again == 0);
    CHECK(folder.names() == std::vector<std::string>{"x"});
    if (std::string(unnamed) == "off") CHECK(read_text(path) == "what was there");
  }
  unsetenv("MUONWALK_UNNAMED_FILES");
}

#endif
