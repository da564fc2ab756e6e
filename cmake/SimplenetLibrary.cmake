# simplenet_set_up_library(<target>): what the library and its optional components have in common.

function(simplenet_set_up_library target)
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  simplenet_target_warnings(${target})
  # GCC stores two adjacent pointers through a vector register, which takes twice the instructions; a
  # call into libc through the PLT takes one more jump; and padding that aligns jumps is executed. See
  # docs/development/performance-findings.md.
  target_compile_options(${target} PRIVATE -fno-tree-slp-vectorize -fno-plt)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fno-align-jumps -fno-align-labels -fno-align-loops)
  endif()
  # While the major version is 0, every minor version may break the ABI, so the SOVERSION contains it.
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    # Only declarations of public headers are exported; the headers set their visibility themselves.
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    # Nothing asks for it, and without it a shared library has the objects of a static one with
    # CMAKE_POSITION_INDEPENDENT_CODE.
    DEFINE_SYMBOL ""
    # A component finds the libraries that it uses beside itself, in a prefix of any name. Packagers of a
    # system set CMAKE_SKIP_INSTALL_RPATH.
    INSTALL_RPATH "$ORIGIN"
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()
