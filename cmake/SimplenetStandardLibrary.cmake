# simplenet_standard_library(<target>): the options that the standard library needs. libc++ 19
# provides std::stop_token only with -fexperimental-library; public headers use it, so programs get
# the option too. Sets SIMPLENET_EXPERIMENTAL_LIBRARY for the .pc file.

include(CheckCXXSourceCompiles)

function(simplenet_standard_library target)
  set(source "#include <stop_token>\nint main() { return std::stop_token{}.stop_requested(); }")
  set(CMAKE_REQUIRED_FLAGS "${CMAKE_CXX23_STANDARD_COMPILE_OPTION}")
  check_cxx_source_compiles("${source}" SIMPLENET_HAS_STOP_TOKEN)
  if(SIMPLENET_HAS_STOP_TOKEN)
    return()
  endif()
  string(APPEND CMAKE_REQUIRED_FLAGS " -fexperimental-library")
  check_cxx_source_compiles("${source}" SIMPLENET_EXPERIMENTAL_LIBRARY)
  if(NOT SIMPLENET_EXPERIMENTAL_LIBRARY)
    message(FATAL_ERROR "The standard library of ${CMAKE_CXX_COMPILER} has no std::stop_token: "
      "libstdc++ >= 12 or libc++ >= 19 is needed.")
  endif()
  target_compile_options(${target} PUBLIC -fexperimental-library)
  target_link_options(${target} PUBLIC -fexperimental-library)
endfunction()
