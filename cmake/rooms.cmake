# add_room(FOLDER [APART] [HEADERS_ONLY] [USES room...] [LINKS library...] SOURCES file...): a room of the house, the folder src/... or sim/...
# that the calling CMakeLists.txt lies in, as the target muonwalk_FOLDER.
#
# A file is included by its path from the root, "src/layout/grid.hpp". But no room gets the root as an include path. Each has
# a window of its own, a folder in which links show the headers of that one room (not of a room within it), and is given its own
# window and those of the rooms that it uses (and of those that they use). An include against the arrows finds no file, so it does not build.
#
# Of a room that is HEADERS_ONLY nothing is compiled: WebAssembly has no processes, but options that are about them.
#
# With MUONWALK_UNITY the files of a room are compiled together; not those of a room that is APART, because they have helpers of
# the same names.
function(add_room name)
  cmake_parse_arguments(ROOM "APART;HEADERS_ONLY" "" "SOURCES;USES;LINKS" ${ARGN})
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(window ${CMAKE_BINARY_DIR}/windows/${name})
  if(IS_SYMLINK ${window}/${folder})  # as a folder of an earlier build may have it: links would be made in the room itself
    file(REMOVE ${window}/${folder})
  endif()
  file(MAKE_DIRECTORY ${window}/${folder})
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp
    ${CMAKE_CURRENT_SOURCE_DIR}/*.inc)
  foreach(file ${files})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${window}/${folder}/${file} SYMBOLIC)
  endforeach()

  set(target muonwalk_${name})
  list(TRANSFORM ROOM_USES PREPEND muonwalk_)
  if(ROOM_HEADERS_ONLY)
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${window})
    target_link_libraries(${target} INTERFACE ${ROOM_USES})
    return()
  endif()
  add_library(${target} OBJECT ${ROOM_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(NOT ROOM_APART)
    compile_together(${target})
  endif()
  target_include_directories(${target} PUBLIC ${window})
  target_link_libraries(${target} PUBLIC muonwalk_compile_options muonwalk_errors ${ROOM_USES} ${ROOM_LINKS})
endfunction()
