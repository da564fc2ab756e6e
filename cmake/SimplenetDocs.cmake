# The target `doc`: the reference of the public headers, in <build>/doc/html. Any warning of
# Doxygen's fails it.

find_package(Doxygen 1.9)
if(NOT DOXYGEN_FOUND)
  message(FATAL_ERROR "SIMPLENET_BUILD_DOCS needs Doxygen (apt install doxygen).")
endif()
configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
add_custom_target(doc
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/doc
  COMMAND Doxygen::doxygen ${PROJECT_BINARY_DIR}/Doxyfile
  COMMENT "Reference: doc/html/index.html"
  VERBATIM)
