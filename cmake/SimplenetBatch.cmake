# Builds that nobody edits, which are those of CI, compile what surrounds the library in less time:
# several sources as one, and without what only a debugger reads.

set(SIMPLENET_TEST_BATCH 1 CACHE STRING
  "Sources of tests that are compiled as one and become one program: for builds that nobody edits")
option(SIMPLENET_TEST_DEBUG_INFO
  "Tests and examples have debug information, if the build type has" ON)
include(CheckLinkerFlag)

# simplenet_batch_options(): for the targets of the directory that calls it, and below.
macro(simplenet_batch_options)
  if(NOT SIMPLENET_TEST_DEBUG_INFO)
    add_compile_options(-g0)
  endif()
  # g++ spends a tenth of its time collecting garbage unless it may use more memory.
  if(SIMPLENET_TEST_BATCH GREATER 1 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(--param=ggc-min-heapsize=4000000 --param=ggc-min-expand=1000)
  endif()
  # Programs with all tests of a folder are large; these linkers, if one is there, take half of the
  # time.
  if(SIMPLENET_TEST_BATCH GREATER 1)
    check_linker_flag(CXX -fuse-ld=lld SIMPLENET_HAS_LLD)
    check_linker_flag(CXX -fuse-ld=gold SIMPLENET_HAS_GOLD)
    if(SIMPLENET_HAS_LLD)
      add_link_options(-fuse-ld=lld)
    elseif(SIMPLENET_HAS_GOLD)
      add_link_options(-fuse-ld=gold)
    endif()
  endif()
endmacro()

# simplenet_compile_as_one(<target>): all its sources in one compilation.
function(simplenet_compile_as_one target)
  if(SIMPLENET_TEST_BATCH GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    # g++ takes these sources for headers, where a class without linkage is a mistake.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# simplenet_precompile_umbrella(<target>): <simplenet/simplenet.hpp> is read once for all targets of
# which each source includes it.
function(simplenet_precompile_umbrella target)
  if(SIMPLENET_TEST_BATCH GREATER 1 AND TARGET simplenet_precompiled_umbrella)
    target_precompile_headers(${target} REUSE_FROM simplenet_precompiled_umbrella)
    get_target_property(type ${target} TYPE)
    if(CMAKE_POSITION_INDEPENDENT_CODE AND NOT type STREQUAL "EXECUTABLE")
      # The compiler would refuse it with the -fPIC of a library.
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIE)
    endif()
  endif()
endfunction()
