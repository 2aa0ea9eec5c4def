# add_exercise(lesson_NN_topic function_name): an exercise of a lesson, in the folder lessons/lesson_NN_topic/try_function_name/
# (docs/writing-a-lesson.md says what has to be in it). Its judge becomes a part of the program muonwalk-try, which ./walk try
# calls, and of the library that notebooks load.
#
# A judge uses the lesson's own reference, steps and plan. They stand in the lesson's source, which is a program; so the judge
# includes build/exercises/lesson_NN_topic.hpp, made here: the lesson's own #include lines, and then all of the lesson inside of
# a namespace of its own, where its main is a function like any other.
function(add_exercise lesson function)
  set(folder ${CMAKE_SOURCE_DIR}/lessons/${lesson}/try_${function})
  set(source ${CMAKE_SOURCE_DIR}/lessons/${lesson}/${lesson}.cpp)
  set(header ${CMAKE_BINARY_DIR}/exercises/${lesson}.hpp)
  string(REGEX REPLACE "^(lesson_[0-9]+)_.*$" "\\1" namespace ${lesson})
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} includes REGEX "^#include")
  list(JOIN includes "\n" includes)
  file(CONFIGURE OUTPUT ${header} @ONLY CONTENT
"// Made by cmake/exercises.cmake.
#pragma once
@includes@
namespace @namespace@ {
#include \"lessons/@lesson@/@lesson@.cpp\"
}
")
  # The judges of one lesson are compiled together, because the lesson is in each of them, and takes longer than they do.
  set_property(GLOBAL APPEND PROPERTY MUONWALK_JUDGES_OF_${lesson} ${folder}/judge.cpp)
  get_property(judges GLOBAL PROPERTY MUONWALK_JUDGES_OF_${lesson})
  list(TRANSFORM judges REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE together)
  list(JOIN together "\n" together)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/exercises/${lesson}.cpp @ONLY CONTENT "// Made by cmake/exercises.cmake.\n@together@\n")
  get_property(lessons GLOBAL PROPERTY MUONWALK_JUDGED_LESSONS)
  if(NOT lesson IN_LIST lessons)
    set_property(GLOBAL APPEND PROPERTY MUONWALK_JUDGED_LESSONS ${lesson})
    target_sources(muonwalk_judges PRIVATE ${CMAKE_BINARY_DIR}/exercises/${lesson}.cpp)
  endif()
  set_property(GLOBAL APPEND PROPERTY MUONWALK_EXERCISES ${lesson}/${function})
endfunction()

# finish_exercises(): the program and the library, when all exercises have been added; and, for tools/judging.py, how the
# reader's file is compiled and linked: a word of the compiler's command line per line.
function(finish_exercises)
  add_executable(muonwalk-try ${CMAKE_SOURCE_DIR}/sim/exercise/muonwalk_try.cpp)
  target_link_libraries(muonwalk-try PRIVATE muonwalk muonwalk_judges ${CMAKE_DL_LIBS})
  add_library(muonwalk_exercises SHARED $<TARGET_OBJECTS:muonwalk_judges>)
  target_link_libraries(muonwalk_exercises PRIVATE muonwalk)
  if(MUONWALK_SANITIZE)  # no reader has these builds, and no test of theirs needs the judges
    set_target_properties(muonwalk_judges muonwalk-try muonwalk_exercises PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  set(compile ${CMAKE_CXX_COMPILER} -std=c++17 -O1 -g1 -Wall -Wextra -Wno-unused-parameter -ffp-contract=off -fno-fast-math
    -I${CMAKE_SOURCE_DIR} -fPIC)
  if(MUONWALK_NATIVE)
    list(APPEND compile -march=native)
  endif()
  if(MUONWALK_SANITIZE)
    list(APPEND compile -fsanitize=${MUONWALK_SANITIZE})
  endif()
  # What is defined nowhere has to be found here and not when the library is loaded (macOS does so by itself). The reader may
  # print with fmt.
  set(link $<TARGET_FILE:muonwalk> $<TARGET_FILE:fmt::fmt> -Wl,-rpath,$<TARGET_FILE_DIR:muonwalk>)
  if(NOT APPLE)
    list(APPEND link -Wl,-z,defs)
  endif()
  list(JOIN compile "\n" compile)
  list(JOIN link "\n" link)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/exercises/compile.txt CONTENT "${compile}\n")
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/exercises/link.txt CONTENT "${link}\n")
endfunction()
