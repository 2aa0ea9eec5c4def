// A process that saves is killed at any moment: the folder holds whole checkpoints, and nothing else.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "lessons/lesson_20_pretrain/tests/small_checkpoint.hpp"
#include "src/io/unfinished.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/optim/random_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// Runs `save(n)` for n = 2, 3, … in a child, and kills it `microseconds` after it has begun, or after it has said that
// the first one is saved. Returns the last n that it had said.
int killed_while_saving(const std::function<void(int)>& save, bool after_the_first, Index microseconds) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    for (int n = 2;; ++n) {
      save(n);
      if (write(ends[1], &n, sizeof n) != sizeof n) _exit(1);
    }
  }
  close(ends[1]);
  int last = 1;
  if (after_the_first) REQUIRE(read(ends[0], &last, sizeof last) == sizeof last);
  const timespec time{0, static_cast<long>(microseconds) * 1000};
  nanosleep(&time, nullptr);
  REQUIRE(kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  while (read(ends[0], &last, sizeof last) == sizeof last) {
  }
  close(ends[0]);
  return last;
}

constexpr Index kLongestWait = 4000;  // microseconds: a few checkpoints on a disk, dozens in memory

// Memory in place of a disk, where there is some: a flush takes no time there, so more is done until the kill.
std::string quick_folder() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
}

}  // namespace

TEST_CASE(
    "write_checkpoint: killed at 200 random moments: each checkpoint is whole, and what was said to be saved is") {
  Choices choose(20);
  int saved = 0;
  for (int trial = 0; trial < 200; ++trial) {
    // Now and then on a disk.
    const TemporaryFolder folder(trial % 10 == 0 ? std::filesystem::temp_directory_path().string() : quick_folder());
    write_checkpoint(checkpoint_path(folder.path(), 1), small_checkpoint(1));
    const int last =
        killed_while_saving([&](int n) { write_checkpoint(checkpoint_path(folder.path(), n), small_checkpoint(n)); },
                            trial % 2 == 0, choose.between(0, kLongestWait));
    const bool unnamed = has_unnamed_files(folder);
    const auto latest = latest_checkpoint(folder.path());
    REQUIRE(latest);
    const int most = read_checkpoint(*latest).steps;
    // It may have saved one more than it could say.
    CHECK((most == last || most == last + 1));
    int checkpoints = 0;
    for (const std::string& name : folder.names()) {
      if (is_unfinished_name(name)) {
        CHECK_FALSE(unnamed);
        continue;
      }
      const Checkpoint read = read_checkpoint(folder.file(name));
      CHECK(folder.file(name) == checkpoint_path(folder.path(), read.steps));
      CHECK(first_difference(read, small_checkpoint(read.steps)) == "");
      ++checkpoints;
    }
    CHECK(checkpoints == most);
    saved += most;
  }
  CHECK(saved >= 200 + 100);
}

TEST_CASE("write_checkpoint: killed while it replaces a checkpoint: the old one is there or the new one, whole") {
  Choices choose(21);
  const TemporaryFolder folder;
  const std::string path = checkpoint_path(folder.path(), 1);
  write_checkpoint(path, small_checkpoint(1));
  for (int trial = 0; trial < 50; ++trial) {
    const int last = killed_while_saving([&](int n) { write_checkpoint(path, small_checkpoint(n)); }, true,
                                         choose.between(0, kLongestWait));
    const Checkpoint read = read_checkpoint(path);
    CHECK((read.steps == last || read.steps == last + 1));
    CHECK(first_difference(read, small_checkpoint(read.steps)) == "");
    CHECK(latest_checkpoint(folder.path()) == path);
    // Between its provisional name and its own, a file may be caught with the first.
    for (const std::string& name : folder.names()) CHECK((is_unfinished_name(name) || folder.file(name) == path));
  }
}
