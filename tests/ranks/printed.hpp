#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace muonwalk::testing {

/// What `work` prints on the standard output; also where it throws, the output is as it was afterwards. When a check
/// fails meanwhile, doctest's words are in it too: then all of it goes to standard error.
template <class Work>
std::string printed(const Work& work) {
  struct Redirected {
    std::FILE* file = std::tmpfile();
    int before = dup(STDOUT_FILENO);
    Redirected() {
      std::fflush(stdout);
      dup2(fileno(file), STDOUT_FILENO);
    }
    std::string text() const {
      std::fflush(stdout);
      std::string all(static_cast<std::size_t>(lseek(fileno(file), 0, SEEK_END)), ' ');
      const ssize_t got = pread(fileno(file), all.data(), all.size(), 0);
      all.resize(static_cast<std::size_t>(got > 0 ? got : 0));
      return all;
    }
    ~Redirected() {
      const std::string all = text();
      dup2(before, STDOUT_FILENO);
      close(before);
      std::fclose(file);
      if (all.find("ERROR: ") != std::string::npos) std::fputs(all.c_str(), stderr);
    }
  } redirected;
  work();
  return redirected.text();
}

}  // namespace muonwalk::testing
