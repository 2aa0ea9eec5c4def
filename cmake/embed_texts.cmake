# embed_texts(target name file [name file]...): an object library in which muonwalk::sim::page_texts::name is the text
# of the file. It is generated when the files change. Raw string literals serve every compiler, where objcopy, ld -b binary
# and .incbin depend on the system. No file may hold the delimiter, or a zero byte.
set(MUONWALK_EMBED_TEXTS ${CMAKE_CURRENT_LIST_DIR}/write_texts.cmake)

function(embed_texts target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "/")
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} "-DTEXTS=${ARGN}" -P ${MUONWALK_EMBED_TEXTS}
    DEPENDS ${files} ${MUONWALK_EMBED_TEXTS} VERBATIM
    COMMENT "Embedding what pages are made from")
  add_library(${target} OBJECT ${source})
  # Clang warns of literals that are longer than the standard asks compilers to bear.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-overlength-strings>)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
