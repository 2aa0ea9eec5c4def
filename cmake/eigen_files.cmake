# eigen_files(file...): the files of the calling folder that include Eigen. All of them in the whole project, also tests and
# benchmarks, are compiled with the same flags: instances of Eigen's templates are merged when a program is linked, and with
# two sets of flags it would be left to chance whose code computes a product. No other file finds Eigen, because nothing else
# puts it on an include path; the test house.eigen looks at every command of the build.
#
# AVX2 and FMA at most, but for one file: src/numerics/newton_schulz_eigen_avx512.cpp compiles the iteration once more, in a
# namespace of its own, so that no instance of one is taken for the other's. Which of the two runs is decided at run time.
#
# Measured on two cores of an EPYC of 2024 (Zen 5, g++ 12; 676 × 876 in fp32, what is done with halves saved, one thread):
# 113 GFLOP/s with AVX2, of 135 that its multiply-adds reach; 191 with AVX-512, of 270. Of a processor whose AVX-512 adds no
# width to its multiply-adds, Zen 4, both take the same time.
#
# Packed blocks come from the heap and not from the stack, because a rank that is a fiber has a small one.
set(MUONWALK_EIGEN_BASE plain)  # the name that MUONWALK_EIGEN has for that code
set(MUONWALK_EIGEN_OPTIONS -DEIGEN_DONT_PARALLELIZE -DEIGEN_STACK_ALLOCATION_LIMIT=16384)
if(MUONWALK_NATIVE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -march=native)
  check_cxx_source_compiles("#if !defined(__AVX2__) || !defined(__FMA__)\n#error\n#endif\nint main() {}" MUONWALK_HAS_AVX2)
  unset(CMAKE_REQUIRED_FLAGS)
  if(MUONWALK_HAS_AVX2)
    list(APPEND MUONWALK_EIGEN_OPTIONS -march=x86-64-v3)
    set(MUONWALK_EIGEN_BASE avx2)
  endif()
endif()
# Sanitized builds are compiled at -O1, where a product takes minutes, and with Eigen's own loops instrumented it still does.
if(MUONWALK_SANITIZE)
  list(APPEND MUONWALK_EIGEN_OPTIONS -O3 -fno-sanitize=all)
endif()

function(eigen_files)
  get_target_property(folders Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  foreach(folder IN LISTS folders)
    list(APPEND options -isystem ${folder})
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${MUONWALK_EIGEN_OPTIONS};${options}")
endfunction()
