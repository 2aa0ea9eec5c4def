# shellcheck shell=bash disable=SC2154
# A small project that stands in for Muonwalk, with a space in its path, and a machine whose package tools are stand-ins:
# what ./walk does can be watched there without installing or compiling anything large. Sourced by walk_test.sh, which says
# where: $source_root, $project, $machine, $calls and $absent.

# Writes the project to $project. A build folder that is there already is kept.
write_project() {
  local lesson
  mkdir -p "$project"/{lessons,tests/bench,cmake,sim/classroom,.ci}
  cp "$source_root/walk" "$source_root/CMakePresets.json" "$project"
  cp "$source_root/cmake/packages.txt" "$project/cmake"
  cp "$source_root/.ci/run" "$project/.ci"
  write "$project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(stand_in LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_library(muonwalk SHARED tests/bench/bench_talk.cpp)
add_library(muonwalk_judge_05 SHARED tests/bench/bench_talk.cpp)
add_custom_target(notebook_libraries DEPENDS muonwalk)
add_executable(muonwalk-try tests/bench/bench_talk.cpp)
enable_testing()
function(add_lesson name)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/lessons/${name}/${name}.cpp)
endfunction()
add_subdirectory(lessons)
add_subdirectory(tests/bench)
add_custom_target(thread_tests)
add_custom_target(short_tests DEPENDS bench_talk)
include(tests/tests.cmake)
CMAKE
  write "$project/lessons/CMakeLists.txt" <<'CMAKE'
# One line per lesson.
add_lesson(lesson_05_echo)
add_lesson(lesson_09_full_step)
CMAKE
  for lesson in lesson_05_echo lesson_09_full_step; do mkdir -p "$project/lessons/$lesson"; done
  write "$project/lessons/lesson_05_echo/lesson_05_echo.cpp" <<'CPP'
#include <cstdio>
#include <cstring>
#include <unistd.h>
// Prints its arguments and whether each is a file here, and exits with 7. "--wait FILE" makes FILE and waits instead.
int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--wait") == 0) {
    std::fclose(std::fopen(argv[2], "w"));
    sleep(1000);
  }
  for (int i = 1; i < argc; ++i) std::printf("<%s>%s\n", argv[i], access(argv[i], F_OK) == 0 ? " is here" : "");
  return 7;
}
CPP
  write "$project/lessons/lesson_09_full_step/lesson_09_full_step.cpp" <<'CPP'
#include <cstdio>
int main() { std::puts("the main job"); }
CPP
  write "$project/lessons/lesson_05_echo/lesson_05_echo.expected" <<'TEXT'
Lesson 05 · Echo of a word                          dp 1 × tp 2 · 2 processes over Gloo · fp32
Question: what comes back, when one calls into a room
that is empty?
Read:     lessons/lesson_05_echo/lesson_05_echo.cpp

step 1 · call
TEXT
  write "$project/lessons/lesson_09_full_step/lesson_09_full_step.expected" <<'TEXT'
Lesson 09 · Full step  dp 4 × tp 2
Question: is it the same?

TEXT
  write "$project/tests/bench/CMakeLists.txt" <<'CMAKE'
add_executable(bench_talk bench_talk.cpp)
add_dependencies(bench_talk lesson_05_echo)
CMAKE
  write "$project/tests/bench/bench_talk.cpp" <<'CPP'
#include <cstdio>
int main(int argc, char**) { std::printf("talked with %d options\n", argc - 1); }
CPP
  write "$project/sim/classroom/try_exercise.py" <<'PYTHON'
# Wants 05 judged, and ends with a code of its own for all else.
import os, sys
judged = "--judge" in sys.argv and os.path.exists(os.path.dirname(sys.argv[0]) + "/../../build/bin/muonwalk-try")
print("judged" if judged else "asked", *sys.argv[1:])
sys.exit(1 if judged else 10 if sys.argv[1:] == ["05"] else 7)
PYTHON
  write "$project/tests/tests.cmake" <<<"# No tests but those that a test of ./walk writes here."
}

# write FILE < text: leaves a file alone that has this text already, so that nothing is built without need.
write() {
  local text
  text=$(cat)
  if [[ ! -f $1 || $(<"$1") != "$text" ]]; then printf '%s\n' "$text" >"$1"; fi
}

# stub NAME [body]: a command that writes its name and arguments to $calls and then does what the body says.
stub() {
  { printf '#!/bin/bash\necho "%s $*" >>"%s"\n' "$1" "$calls"; printf '%s\n' "${2-}"; } >"$machine/$1"
  chmod +x "$machine/$1"
}

# A machine on which all packages are installed but those that the file $absent names. Whatever would change the real
# machine is a stub that fails until a test gives it something better to do.
prepare_machine() {
  rm -rf "$machine" "$calls" "$absent"
  mkdir -p "$machine"
  : >"$absent"
  : >"$calls"
  stub dpkg-query "for package in \"\${@:3}\"; do grep -qxF \"\$package\" '$absent' || echo \"\$package installed\"; done"
  for command in apt-get apt-cache sudo brew; do stub "$command" 'exit 99'; done
}

# What apt-get does when it works: from then on nothing is absent.
working_apt_get() { echo "case \"\$*\" in *' install '*) : >'$absent' ;; esac"; }

# A machine with the shell's usual companions and the stubs, and nothing else: no compiler, no package manager.
prepare_bare_machine() {
  local command
  prepare_machine
  rm "$machine"/*
  for command in bash env cat dirname grep sed tr id head getconf; do ln -s "$(command -v "$command")" "$machine/$command"; done
}
