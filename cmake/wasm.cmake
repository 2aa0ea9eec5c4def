# In place of dependencies.cmake where WebAssembly is compiled: headers alone, as they are installed for this machine, each in a
# folder of its own, because beside them lie headers of this machine's C library.
add_compile_options(-fexceptions -Wno-unknown-pragmas)  # OpenMP's: there is one thread
add_link_options(-fexceptions)

# header_library(target file): a target that shows `file`, or the folder that it lies in, such as fmt/.
function(header_library target file)
  string(MAKE_C_IDENTIFIER found_${file} found)
  find_path(${found} ${file} PATHS /usr/local/include /usr/include /opt/homebrew/include PATH_SUFFIXES eigen3
    NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${found})
    message(FATAL_ERROR "${file} is not installed, which muonwalk.js needs: install the packages that cmake/packages.txt lists "
      "for build (./walk does)")
  endif()
  string(REGEX REPLACE "/.*" "" shown ${file})
  set(folder ${CMAKE_BINARY_DIR}/headers/${shown})
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${${found}}/${shown} ${folder}/${shown} SYMBOLIC)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${folder})
endfunction()
header_library(fmt::fmt fmt/format.h)
header_library(CLI11::CLI11 CLI/CLI.hpp)
header_library(nlohmann_json::nlohmann_json nlohmann/json.hpp)
header_library(muonwalk_xxhash xxhash.h)
header_library(Eigen3::Eigen Eigen/Core)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_compile_definitions(muonwalk_xxhash INTERFACE XXH_INLINE_ALL)

# There are neither threads nor connections.
foreach(nothing Threads::Threads OpenMP::OpenMP_CXX Boost::context gloo muonwalk_sodium ZLIB::ZLIB)
  add_library(${nothing} INTERFACE IMPORTED GLOBAL)
endforeach()
