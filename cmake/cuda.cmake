# MUONWALK_CUDA: src/cuda, and what stands on it. The toolkit's headers and nvcc are needed to build it. A GPU, a driver and
# NVIDIA's libraries are needed by nobody but a run that asks for a GPU: they are opened at run time.
option(MUONWALK_CUDA "Build what computes on GPUs (needs nvcc and the headers of NVIDIA's CUDA toolkit)" OFF)
set(MUONWALK_CUDA_ARCHITECTURES "80;86;89;90" CACHE STRING
  "Compute capabilities that kernels are compiled for; others compile them when a program first loads them")

if(MUONWALK_CUDA AND MUONWALK_SANITIZE AND MUONWALK_TESTS)
  message(FATAL_ERROR "MUONWALK_CUDA and MUONWALK_SANITIZE are both set, and the tests of the one can't run under the other, "
    "because a GPU's threads are fibers there: leave one of them off, or MUONWALK_TESTS.")
endif()
if(MUONWALK_CUDA)
  find_package(CUDAToolkit QUIET)
  if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
    message(FATAL_ERROR "MUONWALK_CUDA is ON, and CMake finds no CUDA toolkit with an nvcc: put nvcc on PATH, or name the "
      "toolkit's folder with -DCUDAToolkit_ROOT=FOLDER, or leave MUONWALK_CUDA OFF.")
  endif()
  # Only the headers: cuda.h, and that of NCCL where it is. Nothing of CUDA is linked.
  add_library(muonwalk_cuda_headers INTERFACE)
  target_include_directories(muonwalk_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  # What else is built with CUDA is told so.
  target_compile_definitions(muonwalk_cuda_headers INTERFACE MUONWALK_WITH_CUDA=1)
  target_link_libraries(muonwalk_cuda_headers INTERFACE ${CMAKE_DL_LIBS})
endif()

# add_skipped_test(name reason): stands in ctest's list for a test that can't be built here, and says why.
function(add_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
endfunction()
