# The toolchain of the preset wasm: the file with which Emscripten comes, wherever it is installed.
find_program(MUONWALK_EMXX em++)
if(NOT MUONWALK_EMXX)
  message(FATAL_ERROR "Emscripten, which compiles to WebAssembly, is not installed, or its em++ is not on PATH: "
    "install emscripten (Debian, Ubuntu: apt install emscripten; Homebrew: brew install emscripten). "
    "Only build/wasm/bin/muonwalk.js needs it.")
endif()
find_program(MUONWALK_EM_CONFIG em-config)
execute_process(COMMAND ${MUONWALK_EM_CONFIG} EMSCRIPTEN_ROOT OUTPUT_VARIABLE emscripten_root
  OUTPUT_STRIP_TRAILING_WHITESPACE)
include(${emscripten_root}/cmake/Modules/Platform/Emscripten.cmake)
