# add_exercise(lesson_NN_topic function_name): an exercise of a lesson, in the folder lessons/lesson_NN_topic/try_function_name/
# (docs/writing-a-lesson.md says what has to be in it). The judges of lesson NN become a library of their own, muonwalk_judge_NN,
# which the program muonwalk-try opens, and so does the lesson's notebook.
#
# A judge uses the lesson's own reference, steps and plan, by the header that add_lesson made.
function(add_exercise lesson function)
  set(folder ${CMAKE_SOURCE_DIR}/lessons/${lesson}/try_${function})
  string(REGEX REPLACE "^(lesson_[0-9]+)_.*$" "\\1" namespace ${lesson})
  # The judges of one lesson are compiled together, because the lesson is in each of them, and takes longer than they do.
  set_property(GLOBAL APPEND PROPERTY MUONWALK_JUDGES_OF_${lesson} ${folder}/judge.cpp)
  get_property(judges GLOBAL PROPERTY MUONWALK_JUDGES_OF_${lesson})
  list(TRANSFORM judges REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE together)
  list(JOIN together "\n" together)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/exercises/${lesson}.cpp @ONLY CONTENT "// Made by cmake/exercises.cmake.\n@together@\n")
  string(REPLACE "lesson_" "muonwalk_judge_" library ${namespace})
  if(NOT TARGET ${library})
    add_library(${library} SHARED ${CMAKE_BINARY_DIR}/exercises/${lesson}.cpp)
    target_include_directories(${library} PRIVATE ${CMAKE_BINARY_DIR}/exercises)
    get_target_property(libraries ${lesson} MUONWALK_LESSON_LIBRARIES)
    target_link_libraries(${library} PRIVATE ${libraries})
    set_property(GLOBAL APPEND PROPERTY MUONWALK_JUDGES ${library})
  endif()
  set_property(GLOBAL APPEND PROPERTY MUONWALK_EXERCISES ${lesson}/${function})
endfunction()

# checked_matrix(): src/numerics/matrix.hpp as a reader's code sees it, where element (row, col) is asked for: its indices are checked
# (sim/classroom/checked_indices.hpp). What else includes the header has it as it is.
function(checked_matrix)
  set(header src/numerics/matrix.hpp)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
  file(READ ${CMAKE_SOURCE_DIR}/${header} plain)
  string(REPLACE "  float& operator()(" "  MUONWALK_CHECKED float& operator()(" checked "${plain}")
  string(REPLACE "  float operator()(" "  MUONWALK_CHECKED float operator()(" checked "${checked}")
  string(REPLACE "return values_[row * cols_ + col]" "return data()[MUONWALK_PLACE(row, col, rows_, cols_)]" checked "${checked}")
  string(REGEX MATCHALL "MUONWALK_[A-Z]+" marks "${checked}")
  list(LENGTH marks count)
  if(NOT count EQUAL 4)
    message(FATAL_ERROR "cmake/exercises.cmake does not find both operators () in ${header} to check their indices; look for them there")
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/exercises/checked/${header} CONTENT "${checked}" @ONLY)
endfunction()

# finish_exercises(): the program that judges, when all exercises have been added; and, for sim/classroom/judging.py, how the
# reader's file is compiled and linked: a word of the compiler's command line per line.
function(finish_exercises)
  add_executable(muonwalk-try ${CMAKE_SOURCE_DIR}/sim/classroom/muonwalk_try.cpp)
  target_link_libraries(muonwalk-try PRIVATE muonwalk ${CMAKE_DL_LIBS})
  get_property(judges GLOBAL PROPERTY MUONWALK_JUDGES)
  if(MUONWALK_SANITIZE)  # no reader has these builds, and no test of theirs needs the judges
    set_target_properties(muonwalk-try ${judges} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  # All that notebooks load.
  get_property(libraries GLOBAL PROPERTY MUONWALK_NOTEBOOK_LIBRARIES)
  add_custom_target(notebook_libraries DEPENDS muonwalk ${libraries} ${judges})
  checked_matrix()
  set(compile ${CMAKE_CXX_COMPILER} -std=c++17 -O1 -g1 -Wall -Wextra -Wno-unused-parameter -D_GLIBCXX_ASSERTIONS -ffp-contract=off -fno-fast-math
    -I${CMAKE_BINARY_DIR}/exercises/checked -I${CMAKE_SOURCE_DIR} -include sim/classroom/checked_indices.hpp -fPIC)
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
