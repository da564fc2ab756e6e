# simplenet_target_warnings(<target>): the warnings this project keeps its own code free of.
# PRIVATE: consumers compile our headers under their own rules.

function(simplenet_target_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic
    -Wconversion -Wno-sign-conversion
    -Wold-style-cast -Wcast-qual -Wcast-align
    -Woverloaded-virtual -Wextra-semi
    -Wformat=2 -Wimplicit-fallthrough -Wundef -Wunused
    # Designated initialisers that name some members, the rest zero, are how kernel structures are
    # filled here.
    -Wno-missing-field-initializers)

  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's plain -Wshadow also objects to a parameter named like a member's type.
    target_compile_options(${target} PRIVATE -Wshadow=local -Wduplicated-cond -Wlogical-op)
  else()
    target_compile_options(${target} PRIVATE -Wshadow)
  endif()

  if(SIMPLENET_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # These follow the optimiser's view of the flow, and change with its level and with the
      # sanitizers; GCC 12 is wrong about std::expected and coroutine frames often enough. Shown,
      # never fatal.
      target_compile_options(${target} PRIVATE
        -Wno-error=maybe-uninitialized -Wno-error=dangling-pointer -Wno-error=array-bounds
        -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=use-after-free
        -Wno-error=free-nonheap-object)
    endif()
  endif()
endfunction()
