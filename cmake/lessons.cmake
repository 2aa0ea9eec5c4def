# add_lesson(lesson_NN_topic [LIBRARIES target...] [TOY argument...] [TEST_ARGUMENTS argument...]): builds lessons/lesson_NN_topic/lesson_NN_topic.cpp
# into bin/ and registers its tests. A lesson that works long names arguments with which most of its tests run it in a smaller
# size.
# With TOY, arguments with which it is small enough to be shown with all values, the pictures and the player are of that run.
function(add_lesson name)
  cmake_parse_arguments(LESSON "" "" "LIBRARIES;TEST_ARGUMENTS;TOY" ${ARGN})
  if(LESSON_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_lesson(${name}) does not know ${LESSON_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${CMAKE_SOURCE_DIR}/lessons/${name}/${name}.cpp)
  target_link_libraries(${name} PRIVATE muonwalk ${LESSON_LIBRARIES})
  set_target_properties(${name} PROPERTIES MUONWALK_TEST_ARGUMENTS "${LESSON_TEST_ARGUMENTS}"
    MUONWALK_TOY "${LESSON_TOY}")
  set_property(GLOBAL APPEND PROPERTY MUONWALK_LESSONS ${name})
endfunction()

# add_lesson_tests(lesson_NN_topic): what tests/lessons/check_lesson.cpp checks, as one test each:
#   .anatomy   its source has the sections of every lesson, and enough prose
#   .expected  prints its .expected, byte by byte; with BLESS=1 in the environment the file is written instead
#   .bugs      every planted bug is caught, and changes on the screen what .bugs.expected says (BLESS=1 writes that, too)
#   .threads   ranks as threads, through memory, print the same as ranks as processes
#   .worlds    ranks as threads, over Gloo, as well
#   .nccl      over NCCL, it prints the same as well, or its .nccl.expected where it has one, with the same checks and
#              counts (tests/nccl; where CUDA is built in, and over stand-ins; BLESS=1 writes that, too)
#   .options   refuses what can't work in one sentence; runs in other sizes, precisions and levels of detail
# and, by tests/lessons/check_recording.cpp:
#   .record    --record and --svg write what it prints, what its ranks hold and what they send
# and, by tests/lessons/check_trace.cpp:
#   .trace     --trace and --trace-per-rank are sound, and tell of the bytes that the transports counted
function(add_lesson_tests name)
  get_target_property(arguments ${name} MUONWALK_TEST_ARGUMENTS)
  foreach(check anatomy expected bugs threads worlds options)
    add_test(NAME ${name}.${check}
      COMMAND check_lesson ${check} $<TARGET_FILE:${name}> ${CMAKE_SOURCE_DIR}/lessons/${name}/${name}.expected ${arguments})
    set_tests_properties(${name}.${check} PROPERTIES TIMEOUT 1200)
  endforeach()
  add_test(NAME ${name}.record COMMAND check_recording $<TARGET_FILE:${name}> ${arguments})
  set_tests_properties(${name}.record PROPERTIES TIMEOUT 1200)
  add_test(NAME ${name}.trace COMMAND check_trace $<TARGET_FILE:${name}> ${arguments})
  set_tests_properties(${name}.trace PROPERTIES TIMEOUT 1200)
  # ThreadSanitizer sees neither into other processes nor into the system's Gloo: it is for ranks that are threads.
  set_tests_properties(${name}.threads PROPERTIES LABELS threads)
  add_dependencies(thread_tests check_lesson ${name})
endfunction()
