# simplenet_target_warnings(<target>): the warnings that this project's code is free of. PRIVATE:
# consumers compile our headers with their own options.

function(simplenet_target_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic
    -Wconversion -Wno-sign-conversion
    -Wold-style-cast -Wcast-qual -Wcast-align
    -Woverloaded-virtual -Wextra-semi
    -Wformat=2 -Wimplicit-fallthrough -Wundef -Wunused
    # Kernel structures are filled here with designated initialisers that name some members and
    # leave the rest zero.
    -Wno-missing-field-initializers)

  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's plain -Wshadow also warns about a parameter that has the name of a member's type.
    target_compile_options(${target} PRIVATE -Wshadow=local -Wduplicated-cond -Wlogical-op)
    if(CMAKE_UNITY_BUILD)
      # Sources that are included are taken for headers, where a class without linkage is a mistake.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  else()
    target_compile_options(${target} PRIVATE -Wshadow)
  endif()

  if(SIMPLENET_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # These warnings depend on the optimiser's view of the control flow, and so on its level and
      # on the sanitizers; GCC 12 is often wrong about std::expected and coroutine frames. Shown,
      # never errors.
      target_compile_options(${target} PRIVATE
        -Wno-error=maybe-uninitialized -Wno-error=dangling-pointer -Wno-error=array-bounds
        -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=use-after-free
        -Wno-error=free-nonheap-object)
    endif()
  endif()
endfunction()
