# eigen_files(file...): the files of the calling folder that include Eigen. All of them in the whole project, also tests and
# benchmarks, are compiled with the same flags: instances of Eigen's templates are merged when a program is linked, and with
# two sets of flags it would be left to chance whose code computes a product. No other file finds Eigen, because nothing else
# puts it on an include path; the test house.eigen looks at every command of the build.
#
# AVX2 and FMA at most: so that the bits of a product are the same on all processors that have them, and because that is
# the level for which Eigen 3.4 and its sizes of blocks were made. Eigen's own threads would change the bits with their number.
#
# Measured on an Intel Xeon of 2023 with two cores (g++ 12; 676 × 876, what is done of a step with halves saved, one thread):
# AVX2 66 GFLOP/s in stripes of 48 to 128 rows, of 112 that its multiply-adds reach; AVX-512 89 to 92, of 209. Cache sizes
# from 32 KB / 256 KB / 2 MB to 48 KB / 2 MB / 8 MB change little (60 to 66). So AVX-512 would be 1.35 × as fast there and was
# not taken, for the bits' sake; on a processor whose AVX-512 adds no width to its multiply-adds, AVX2 is the faster one.
#
# Packed blocks come from the heap and not from the stack, because a rank that is a fiber has a small one.
set(MUONWALK_EIGEN_OPTIONS -DEIGEN_DONT_PARALLELIZE -DEIGEN_STACK_ALLOCATION_LIMIT=16384)
if(MUONWALK_NATIVE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -march=native)
  check_cxx_source_compiles("#if !defined(__AVX2__) || !defined(__FMA__)\n#error\n#endif\nint main() {}" MUONWALK_HAS_AVX2)
  unset(CMAKE_REQUIRED_FLAGS)
  if(MUONWALK_HAS_AVX2)
    list(APPEND MUONWALK_EIGEN_OPTIONS -march=x86-64-v3)
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
