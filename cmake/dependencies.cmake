# Everything Muonwalk builds on. On Debian all of it comes from the packages that cmake/packages.txt lists; that path is
# the tested one. What find_package does not find (macOS, other systems) is fetched from its project's own repository, at
# the version that Debian 12 packages.
option(MUONWALK_FETCH "Fetch a library that is not installed, instead of stopping" ON)

if(APPLE)  # Homebrew keeps libomp out of the compiler's sight.
  list(APPEND CMAKE_PREFIX_PATH /opt/homebrew/opt/libomp /usr/local/opt/libomp)
endif()
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)

include(FetchContent)
set(FETCHCONTENT_QUIET OFF)  # A download shows its progress.

# fetch_library(name repository tag...): declares a library that is not installed, and says that it is being fetched.
function(fetch_library name repository tag)
  if(NOT MUONWALK_FETCH)
    message(FATAL_ERROR "${name} is not installed, and MUONWALK_FETCH is OFF: "
      "install the packages that cmake/packages.txt lists (./walk does), or configure with -DMUONWALK_FETCH=ON.")
  endif()
  message(NOTICE "${name} is not installed: fetching ${tag} from ${repository}")
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} ${ARGN})
endfunction()

# fetch_headers(name target folder repository tag): a library that is only headers. Its own CMake files are passed over
# (SOURCE_SUBDIR names a folder that does not exist), so that none of its options, tests or warnings come along.
function(fetch_headers name target folder repository tag)
  fetch_library(${name} ${repository} ${tag} SOURCE_SUBDIR no_cmake_files)
  FetchContent_MakeAvailable(${name})
  string(TOLOWER ${name} lower_name)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${${lower_name}_SOURCE_DIR}/${folder})
endfunction()

find_package(Eigen3 3.4 NO_MODULE QUIET)
if(NOT Eigen3_FOUND)
  fetch_headers(Eigen3 Eigen3::Eigen "" https://gitlab.com/libeigen/eigen.git 3.4.0)
endif()

find_package(CLI11 QUIET)
if(NOT CLI11_FOUND)
  fetch_headers(CLI11 CLI11::CLI11 include https://github.com/CLIUtils/CLI11.git v2.1.2)
endif()

find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  fetch_headers(nlohmann_json nlohmann_json::nlohmann_json include https://github.com/nlohmann/json.git v3.11.2)
endif()

# xxHash is used as one header, so that there is nothing to link.
find_path(MUONWALK_XXHASH_DIR xxhash.h)
add_library(muonwalk_xxhash INTERFACE)
target_compile_definitions(muonwalk_xxhash INTERFACE XXH_INLINE_ALL)
if(MUONWALK_XXHASH_DIR)
  target_include_directories(muonwalk_xxhash SYSTEM INTERFACE ${MUONWALK_XXHASH_DIR})
else()
  fetch_headers(xxHash muonwalk_xxhash_header "" https://github.com/Cyan4973/xxHash.git v0.8.1)
  target_link_libraries(muonwalk_xxhash INTERFACE muonwalk_xxhash_header)
endif()

# What ranks prove their knowledge of a secret with. Its own build is not a CMake build, so it has to be installed.
find_path(MUONWALK_SODIUM_DIR sodium.h)
find_library(MUONWALK_SODIUM_LIBRARY sodium)
if(NOT MUONWALK_SODIUM_DIR OR NOT MUONWALK_SODIUM_LIBRARY)
  message(FATAL_ERROR "libsodium is not installed: install libsodium-dev (Debian, Ubuntu) or libsodium (Homebrew, others)")
endif()
add_library(muonwalk_sodium INTERFACE)
target_include_directories(muonwalk_sodium SYSTEM INTERFACE ${MUONWALK_SODIUM_DIR})
target_link_libraries(muonwalk_sodium INTERFACE ${MUONWALK_SODIUM_LIBRARY})

# Stacks for ranks that are fibers. Boost is too large to be fetched for one of its libraries, so it has to be installed.
find_package(Boost 1.71 QUIET COMPONENTS context)
if(NOT Boost_FOUND)
  message(FATAL_ERROR "Boost.Context is not installed: install libboost-context-dev (Debian, Ubuntu) or boost (Homebrew)")
endif()

if(MUONWALK_TESTS)
  find_package(doctest QUIET)
  if(NOT doctest_FOUND)
    fetch_headers(doctest doctest::doctest "" https://github.com/doctest/doctest.git v2.4.9)
  endif()
endif()

# The libraries that are compiled. They end up inside a shared library: hence position-independent code.
find_package(fmt QUIET)
if(NOT fmt_FOUND)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  fetch_library(fmt https://github.com/fmtlib/fmt.git 9.1.0)
  FetchContent_MakeAvailable(fmt)
endif()

# Its own build makes a shared and a static library; the static one, with the header that it configures, is what is used.
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  fetch_library(ZLIB https://github.com/madler/zlib.git v1.2.13)
  FetchContent_MakeAvailable(ZLIB)
  target_include_directories(zlibstatic SYSTEM INTERFACE ${zlib_SOURCE_DIR} ${zlib_BINARY_DIR})
  add_library(ZLIB::ZLIB ALIAS zlibstatic)
endif()

find_package(Gloo QUIET)
if(NOT Gloo_FOUND)
  # Gloo has no release tags; this is the commit that Debian 12 packages. It asks for a CMake older than today's.
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  set(USE_LIBUV ${APPLE} CACHE BOOL "Gloo's only transport on macOS" FORCE)
  fetch_library(Gloo https://github.com/facebookincubator/gloo.git 5b143513263133af2b95547e97c07cebeb72bf72)
  FetchContent_MakeAvailable(Gloo)
  target_compile_options(gloo PRIVATE -include cstdint)  # Newer compilers no longer include it by chance.
  target_include_directories(gloo SYSTEM INTERFACE ${gloo_SOURCE_DIR} ${gloo_BINARY_DIR})
endif()

if(MUONWALK_BENCH)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    set(BENCHMARK_ENABLE_TESTING OFF CACHE BOOL "Google Benchmark's own tests" FORCE)
    fetch_library(benchmark https://github.com/google/benchmark.git v1.7.1)
    FetchContent_MakeAvailable(benchmark)
  endif()
endif()

# The one Python of the build and of the tests. What a test imports from a package of Debian's (selenium, jupyter_client) is
# only there for Debian's own Python, and on many machines another one stands first on PATH.
find_program(MUONWALK_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(MUONWALK_PYTHON python3)
