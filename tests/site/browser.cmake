# Tests in a real browser. Exit code 77 says that something for them is missing here; the test's output says what.
find_program(MUONWALK_CHROMIUM NAMES chromium chromium-browser google-chrome)
find_program(MUONWALK_CHROMEDRIVER NAMES chromedriver)
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
  add_test(NAME ${name} COMMAND ${MUONWALK_PYTHON} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS site SKIP_RETURN_CODE 77 TIMEOUT 600
    ENVIRONMENT "${browser_environment}")
endfunction()

add_browser_test(docs.player ${CMAKE_CURRENT_LIST_DIR}/player_test.py ${CMAKE_SOURCE_DIR}/docs/player
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
if(TARGET docs)
  add_browser_test(docs.browse ${CMAKE_CURRENT_LIST_DIR}/browse_site.py ${MUONWALK_SITE_DIR}/html)
  foreach(about search reading shell lesson)
    add_browser_test(docs.${about} ${CMAKE_CURRENT_LIST_DIR}/${about}_test.py ${MUONWALK_SITE_DIR}/html)
  endforeach()
  add_browser_test(docs.figures ${CMAKE_CURRENT_LIST_DIR}/figures_test.py ${CMAKE_SOURCE_DIR} ${MUONWALK_SITE_DIR}/html
    ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_browser_test(docs.axe ${CMAKE_CURRENT_LIST_DIR}/axe_test.py ${MUONWALK_SITE_DIR}/html)
  set_tests_properties(docs.browse docs.figures docs.search docs.reading docs.shell docs.lesson docs.axe
    PROPERTIES FIXTURES_REQUIRED docs_site)
  set_tests_properties(docs.figures PROPERTIES TIMEOUT 1200)  # some forty pages, half of them broken on purpose
else()
  skip_site_tests("${MUONWALK_DOCS_MISSING}" docs.browse docs.figures docs.search docs.reading docs.shell docs.lesson
    docs.axe)
endif()
takes_long(docs.lesson docs.browse docs.figures docs.search docs.reading docs.shell docs.axe)
