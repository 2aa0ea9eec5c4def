# The flags that every file of ours is compiled with.
add_library(muonwalk_compile_options INTERFACE)
target_compile_options(muonwalk_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  # Where GCC 12 moves a std::variant, it warns of members that the other alternatives would have.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>
  $<$<BOOL:${MUONWALK_WERROR}>:-Werror>
  # Law 2: floating point has an order. The compiler must neither fuse nor reorder what is written.
  -ffp-contract=off -fno-fast-math
  $<$<BOOL:${MUONWALK_NATIVE}>:-march=native>)

# compile_together(target): with MUONWALK_UNITY its files are compiled together, which takes a fraction of the time. So what stands in
# their anonymous namespaces has a name of its own in the whole target. Files with flags of their own are compiled by themselves.
function(compile_together target)
  if(MUONWALK_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    # GCC takes the files for headers, whose types should not be made of anonymous ones.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# The check of vptr opens a pipe to see whether memory can be read: a program that is short of files looks broken to it.
if(MUONWALK_SANITIZE)
  target_compile_options(muonwalk_compile_options INTERFACE
    -fsanitize=${MUONWALK_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(muonwalk_compile_options INTERFACE -fsanitize=${MUONWALK_SANITIZE})
endif()

# compile_quickly(): what the calling folder compiles is not optimized where sanitizers watch. It takes half the time to compile, and
# what it runs is short: numbers are multiplied in src.
macro(compile_quickly)
  if(MUONWALK_SANITIZE)
    add_compile_options(-O0)
  endif()
endmacro()
