# program_in_namespace(FOLDER/NAME.cpp namespace): makes build/exercises/NAME.hpp, the program's own #include lines, and then all of it
# inside of a namespace of its own, where its main is a function like any other. Judges of exercises and tests use a lesson's own
# reference, steps and plan that way, and muonwalk.js has many lessons, whose functions are global and share names. One unit of
# what is linked may include it.
function(program_in_namespace source namespace)
  get_filename_component(name ${source} NAME_WE)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${source})
  file(STRINGS ${CMAKE_SOURCE_DIR}/${source} includes REGEX "^#include")
  list(JOIN includes "\n" includes)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/exercises/${name}.hpp @ONLY CONTENT
"// Made by cmake/lessons.cmake.
#pragma once
@includes@
namespace @namespace@ {
#include \"@source@\"
}
")
endfunction()

# add_lesson(lesson_NN_topic [LIBRARIES target...] [TOY argument...] [TEST_ARGUMENTS argument...]): builds
# lessons/lesson_NN_topic/lesson_NN_topic.cpp into bin/ and registers its tests. A lesson that works long names arguments with
# which most of its tests run it in a smaller size. With TOY, arguments with which it is small enough to be shown with all
# values, the player is of that run.
#
# Other .cpp files in the lesson's folder become a shared library of its own, muonwalk_lesson_NN, which its notebook and its
# judge load too. A CMakeLists.txt in the folder may say more about that library. Nobody else includes a file of it.
function(add_lesson name)
  cmake_parse_arguments(LESSON "" "" "LIBRARIES;TEST_ARGUMENTS;TOY" ${ARGN})
  if(LESSON_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_lesson(${name}) does not know ${LESSON_UNPARSED_ARGUMENTS}")
  endif()
  set(folder ${CMAKE_SOURCE_DIR}/lessons/${name})
  string(REGEX REPLACE "^(lesson_[0-9]+)_.*$" "\\1" namespace ${name})
  program_in_namespace(lessons/${name}/${name}.cpp ${namespace})
  set(library muonwalk_${namespace})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(REMOVE_ITEM sources ${folder}/${name}.cpp)
  set(libraries muonwalk ${LESSON_LIBRARIES})
  if(sources)
    add_library(${library} SHARED ${sources})
    compile_together(${library})
    target_link_libraries(${library} PUBLIC ${libraries})
    set(libraries ${library})
    set_property(GLOBAL APPEND PROPERTY MUONWALK_NOTEBOOK_LIBRARIES ${library})
    if(EXISTS ${folder}/CMakeLists.txt)
      add_subdirectory(${folder} ${CMAKE_BINARY_DIR}/lessons/${name})
    endif()
  endif()
  add_executable(${name} ${folder}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${libraries})
  set_property(TARGET ${name} PROPERTY MUONWALK_LESSON_LIBRARIES ${libraries})
  set_target_properties(${name} PROPERTIES MUONWALK_TEST_ARGUMENTS "${LESSON_TEST_ARGUMENTS}"
    MUONWALK_TOY "${LESSON_TOY}")
  set_property(GLOBAL APPEND PROPERTY MUONWALK_LESSONS ${name})
endfunction()

# add_lesson_tests(lesson_NN_topic): what tests/lessons/check_lesson.py checks, as one test each:
#   .anatomy    its source has the sections of every lesson
#   .expected   it prints its .expected, byte by byte; with BLESS=1 in the environment the file is written instead
#   .bugs       every planted bug is caught, and changes on the screen what .bugs.expected says (BLESS=1 writes that, too)
#   .fibers     ranks as fibers, through memory, print the same as ranks as processes, in whatever order they take turns
#   .otherwise  it refuses in one sentence or runs in other sizes, precisions and details; what it records and traces is what it
#               printed and what its transports counted
#   .grids      what it predicts holds on every grid of up to 64 ranks; of lessons that work longer, on one in seven or 29
#   .nccl       over NCCL, it prints the same as well, or its .nccl.expected where it has one, with the same checks and
#               counts (tests/nccl; where CUDA is built in, and over stand-ins; BLESS=1 writes that, too)
function(add_lesson_tests name)
  # Under a sanitizer the screen in full size says nothing more, a planted bug is another number in the same code, two
  # orders of turns are enough, and what switches turns is the same in every lesson.
  set(checks otherwise)
  if(NOT MUONWALK_SANITIZE)
    list(APPEND checks fibers anatomy expected bugs grids)
  elseif(name MATCHES "^lesson_0")
    list(APPEND checks fibers)
  endif()
  foreach(check ${checks})
    add_lesson_check(${name} ${check})
    if(check STREQUAL "fibers" AND MUONWALK_SANITIZE)
      set_property(TEST ${name}.fibers APPEND PROPERTY ENVIRONMENT MUONWALK_TURNS=2)
    elseif(check STREQUAL "fibers" AND name MATCHES "^lesson_(1[2-8]|2[014])")  # of lessons that work longer
      set_property(TEST ${name}.fibers APPEND PROPERTY ENVIRONMENT MUONWALK_TURNS=50)
    endif()
    if(check STREQUAL "grids" AND name MATCHES "^lesson_(1[2-9]|2)")
      # Two lessons train a model that takes half a minute on 64 ranks, and one judges six programs.
      set(each 7)
      if(name MATCHES "^lesson_(1[78]|24)")
        set(each 29)
      endif()
      set_property(TEST ${name}.grids APPEND PROPERTY ENVIRONMENT MUONWALK_GRIDS=${each})
    endif()
    # Of lessons before 10 ./walk test compares the screen and the planted bugs, of two lessons everything.
    if(NOT name IN_LIST MUONWALK_SHORT_LESSONS AND NOT (name MATCHES "^lesson_0" AND check MATCHES "^(anatomy|expected|bugs)$"))
      takes_long(${name}.${check})
    endif()
  endforeach()
  if(name MATCHES "^lesson_0")
    add_dependencies(short_tests ${name})
  endif()
endfunction()

# add_lesson_check(lesson_NN_topic check): one of them, as the test lesson_NN_topic.check.
function(add_lesson_check name check)
  get_target_property(arguments ${name} MUONWALK_TEST_ARGUMENTS)
  add_test(NAME ${name}.${check}
    COMMAND ${MUONWALK_PYTHON} ${CMAKE_SOURCE_DIR}/tests/lessons/check_lesson.py ${check} $<TARGET_FILE:${name}>
      ${CMAKE_SOURCE_DIR}/lessons/${name}/${name}.expected ${arguments})
  set_tests_properties(${name}.${check} PROPERTIES TIMEOUT 1200)
  if(check STREQUAL "bugs")  # what is kept shows last bits
    set_property(TEST ${name}.bugs APPEND PROPERTY ENVIRONMENT MUONWALK_EIGEN=${MUONWALK_EIGEN_BASE})
  endif()
  if(name MATCHES "^lesson_(1[2-8]|2[014])")  # what takes longest begins first, so that nothing is left to run alone
    set_tests_properties(${name}.${check} PROPERTIES COST 100)
  endif()
endfunction()

# add_lesson_test([NAME word] source...): the tests that stand in a lesson's folder, as the program test_lesson_NN, or
# test_lesson_NN_word. They have the lesson's library, and its program's path as LESSON.
function(add_lesson_test)
  cmake_parse_arguments(TEST "" "NAME" "" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} DIRECTORY)
  get_filename_component(lesson ${folder} NAME)
  string(REGEX REPLACE "^(lesson_[0-9]+)_.*$" "test_\\1" name ${lesson})
  if(TEST_NAME)
    string(APPEND name _${TEST_NAME})
  endif()
  add_muonwalk_test(${name} ${TEST_UNPARSED_ARGUMENTS})
  get_target_property(libraries ${lesson} MUONWALK_LESSON_LIBRARIES)
  target_link_libraries(${name} PRIVATE muonwalk_run_program ${libraries})
  target_include_directories(${name} PRIVATE ${CMAKE_BINARY_DIR}/exercises)
  target_compile_definitions(${name} PRIVATE LESSON="$<TARGET_FILE:${lesson}>")
  add_dependencies(${name} ${lesson})
endfunction()
