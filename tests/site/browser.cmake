# Tests in a real browser. Exit code 77 says that something for them is missing here; the test's output says what.
find_program(MUONWALK_CHROMIUM NAMES chromium chromium-browser google-chrome)
find_program(MUONWALK_CHROMEDRIVER NAMES chromedriver)
# The module selenium belongs to the system's Python, where another Python may come first.
find_program(MUONWALK_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT MUONWALK_SYSTEM_PYTHON)
  find_program(MUONWALK_SYSTEM_PYTHON python3 REQUIRED)
endif()

# What was found, for the tests; what was not is empty.
set(browser_environment)
foreach(program MUONWALK_CHROMIUM MUONWALK_CHROMEDRIVER)
  if(${program})
    list(APPEND browser_environment "${program}=${${program}}")
  else()
    list(APPEND browser_environment "${program}=")
  endif()
endforeach()

function(add_browser_test name)
  add_test(NAME ${name} COMMAND ${MUONWALK_SYSTEM_PYTHON} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS site SKIP_RETURN_CODE 77 TIMEOUT 600
    ENVIRONMENT "${browser_environment}")
endfunction()

add_browser_test(docs.player ${CMAKE_CURRENT_LIST_DIR}/player_test.py ${CMAKE_SOURCE_DIR}/docs/player
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
if(TARGET docs)
  add_browser_test(docs.browse ${CMAKE_CURRENT_LIST_DIR}/browse_site.py ${MUONWALK_SITE_DIR}/html
    ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_browser_test(docs.search ${CMAKE_CURRENT_LIST_DIR}/search_test.py ${MUONWALK_SITE_DIR}/html)
  add_browser_test(docs.reading ${CMAKE_CURRENT_LIST_DIR}/reading_test.py ${MUONWALK_SITE_DIR}/html)
  set_tests_properties(docs.browse docs.search docs.reading PROPERTIES FIXTURES_REQUIRED docs_site)
  set_tests_properties(docs.browse PROPERTIES TIMEOUT 1800)  # all players, frame by frame, at three sizes
else()
  skip_site_tests("${MUONWALK_DOCS_MISSING}" docs.browse docs.search docs.reading)
endif()
