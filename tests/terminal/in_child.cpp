#include "tests/terminal/in_child.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <thread>

namespace muonwalk::testing {
namespace {

std::string read_all(int file) {
  std::string all;
  char some[4096];
  for (ssize_t count; (count = read(file, some, sizeof some)) > 0;) all.append(some, static_cast<std::size_t>(count));
  close(file);
  return all;
}

}  // namespace

Ended in_child(const std::function<int()>& what, Errors errors) {
  std::fflush(nullptr);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    alarm(30);
    dup2(out[1], STDOUT_FILENO);
    dup2(errors == Errors::apart ? err[1] : out[1], STDERR_FILENO);
    for (int file : {out[0], out[1], err[0], err[1]}) close(file);
    int code = 99;
    try {
      code = what();
    } catch (const std::exception& error) {
      say(error.what());
    }
    std::fflush(stdout);
    _exit(code);
  }
  close(out[1]);
  close(err[1]);
  Ended ended;
  std::thread errors_read([&] { ended.err = read_all(err[0]); });
  ended.out = read_all(out[0]);
  errors_read.join();
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("the child can't be waited for");
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

void say(const std::string& words) {
  if (write(STDERR_FILENO, words.data(), words.size()) < 0) _exit(98);
}

}  // namespace muonwalk::testing
