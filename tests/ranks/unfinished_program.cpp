// Has a file half written and a folder made, says so, and waits to be ended, or ends by itself:
//   unfinished_program FOLDER wait|exit|throw|write
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sim/terminal/end_on_signals.hpp"
#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"

int main(int, char** argv) {
  const std::string folder = argv[1], how = argv[2];
  muonwalk::sim::end_on_signals("unfinished_program: interrupted");
  muonwalk::make_folder("--save", folder + "/pictures/deeper");
  muonwalk::FileBeside file(folder + "/file");
  file.write("half", 4);
  std::puts("ready");
  std::fflush(stdout);
  if (how == "exit") std::exit(5);
  if (how == "throw") {
    try {
      throw std::runtime_error("on the way");
    } catch (const std::exception&) {
      return 6;
    }
  }
  while (how == "write") {
    std::puts("to nobody");
    std::fflush(stdout);
  }
  while (true) pause();
}
