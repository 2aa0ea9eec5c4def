#pragma once

#include <vector>

namespace muonwalk {

/// A program of muonwalk.js: one that is made is in the list.
struct Program {
  using Main = int (*)(int, char**);  ///< As its file has it.

  Program(const char* its_name, Main its_main) : name(its_name), main(its_main) { all().push_back(this); }
  /// All of them.
  static std::vector<const Program*>& all() {
    static std::vector<const Program*> programs;
    return programs;
  }

  const char* name;  ///< "lesson_05_tp_gather"
  Main main;         ///< What it does.
};

}  // namespace muonwalk
