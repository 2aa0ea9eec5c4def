# embed_texts(target name file [name file]... [folder/ file...]...): the target, which the same CMakeLists.txt has made, gets
# muonwalk::sim::page_texts::name, the text of the file; and of a folder, muonwalk::sim::page_texts::folder, pairs of a file's
# name, without its end, and its text, in the order in which they are given. The header TARGET_texts.hpp declares them; it is
# included by its path from the root, as if it stood beside that CMakeLists.txt. All is generated when the files change. Raw string
# literals serve every compiler, where objcopy, ld -b binary and .incbin depend on the system. No file may hold the delimiter,
# or a zero byte.
set(MUONWALK_EMBED_TEXTS ${CMAKE_CURRENT_LIST_DIR}/write_texts.cmake)

function(embed_texts target)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${target}_texts)
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "/.")
  add_custom_command(OUTPUT ${made}.cpp ${made}.hpp
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${made}.cpp "-DTEXTS=${ARGN}" -P ${MUONWALK_EMBED_TEXTS}
    DEPENDS ${files} ${MUONWALK_EMBED_TEXTS} VERBATIM
    COMMENT "Embedding what pages are made from")
  target_sources(${target} PRIVATE ${made}.cpp ${made}.hpp)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR})
  # Clang warns of literals that are longer than the standard asks compilers to bear.
  set_source_files_properties(${made}.cpp PROPERTIES COMPILE_OPTIONS
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-overlength-strings>)
endfunction()
