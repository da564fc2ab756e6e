# The target `doc`: one site of the pages of docs/ and the reference of the public headers, in
# <build>/doc/html. It fails on any warning of Doxygen or finding of scripts/lint.

find_package(Doxygen 1.9.4)
find_package(Python3 3.9 COMPONENTS Interpreter)
find_path(DOXYGEN_AWESOME doxygen-awesome.css PATHS /usr/share/doxygen-awesome-css DOC "The theme of the site")
if(NOT DOXYGEN_FOUND OR NOT Python3_FOUND OR NOT DOXYGEN_AWESOME)
  message(FATAL_ERROR
    "SIMPLENET_BUILD_DOCS needs Doxygen, its theme and Python (apt install doxygen doxygen-awesome-css python3).")
endif()
set(site ${PROJECT_BINARY_DIR}/doc)
configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/docs/site/Names.in ${PROJECT_BINARY_DIR}/Doxyfile.names @ONLY)
set(website ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/website --into ${site})
add_custom_target(doc
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${site}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${site}
  COMMAND Doxygen::doxygen ${PROJECT_BINARY_DIR}/Doxyfile.names
  COMMAND Doxygen::doxygen -w html ${site}/header.html ${site}/footer.html ${site}/default.css
    ${PROJECT_BINARY_DIR}/Doxyfile.names
  COMMAND ${website} prepare --names ${site}/names.tag --doxygen ${DOXYGEN_VERSION}
  COMMAND Doxygen::doxygen ${PROJECT_BINARY_DIR}/Doxyfile
  COMMAND ${website} finish
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/lint site ${site}/html
  COMMENT "Site: doc/html/index.html"
  VERBATIM)
