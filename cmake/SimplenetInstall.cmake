# What `cmake --install` installs: the library, its headers, the CMake package under both names, and
# simplenet.pc. All of it finds its prefix from its own location, so the tree may be moved.

include(CMakePackageConfigHelpers)

if(SIMPLENET_SEAMS)
  install(CODE "message(FATAL_ERROR
    \"This build has the seams of the tests; configure with -DSIMPLENET_SEAMS=OFF to install it.\")" ALL_COMPONENTS)
endif()

# simplenet_install_library(<target> <export set>)
function(simplenet_install_library target exports)
  install(TARGETS ${target} EXPORT ${exports}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

simplenet_install_library(simplenet libsimplenet-targets)
foreach(component IN LISTS simplenet_components)
  simplenet_install_library(simplenet_${component} libsimplenet-${component})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/share/gdb/libsimplenet-gdb.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/libsimplenet/gdb)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/lint_coroutines
  DESTINATION ${CMAKE_INSTALL_DATADIR}/libsimplenet)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/coroutine_lint
  DESTINATION ${CMAKE_INSTALL_DATADIR}/libsimplenet FILES_MATCHING PATTERN *.py)

# --- find_package(libsimplenet) and find_package(simplenet) --------------------------------------

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/libsimplenet)
set(alias_dir ${CMAKE_INSTALL_LIBDIR}/cmake/simplenet)
set(generated ${PROJECT_BINARY_DIR}/package)

# Shared libraries pull in liburing, OpenSSL and zlib themselves; programs that link static ones have to find
# them.
get_target_property(library_type simplenet TYPE)
set(SIMPLENET_NEEDS_LIBURING OFF)
set(SIMPLENET_NEEDS_OPENSSL OFF)
set(SIMPLENET_NEEDS_ZLIB OFF)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(SIMPLENET_NEEDS_LIBURING ${SIMPLENET_IO_URING})
  set(SIMPLENET_NEEDS_OPENSSL ${SIMPLENET_TLS})
  set(SIMPLENET_NEEDS_ZLIB ${SIMPLENET_HTTP})
endif()

install(EXPORT libsimplenet-targets NAMESPACE simplenet:: DESTINATION ${package_dir})
foreach(component IN LISTS simplenet_components)
  install(EXPORT libsimplenet-${component} NAMESPACE simplenet:: DESTINATION ${package_dir})
endforeach()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/libsimplenet-config.cmake.in
  ${generated}/libsimplenet-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${generated}/libsimplenet-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${generated}/libsimplenet-config.cmake
  ${generated}/libsimplenet-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindLiburing.cmake
  DESTINATION ${package_dir})

# The second name forwards to the first: it is one package, so one project may ask for both.
file(WRITE ${generated}/simplenet-config.cmake
  "include(\${CMAKE_CURRENT_LIST_DIR}/../libsimplenet/libsimplenet-config.cmake)\n")
file(WRITE ${generated}/simplenet-config-version.cmake
  "include(\${CMAKE_CURRENT_LIST_DIR}/../libsimplenet/libsimplenet-config-version.cmake)\n")
install(FILES
  ${generated}/simplenet-config.cmake
  ${generated}/simplenet-config-version.cmake
  DESTINATION ${alias_dir})

# --- pkg-config ----------------------------------------------------------------------------------

# The .pc file states paths relative to itself, unless the packager asked for absolute directories.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
  set(PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH pc_to_prefix /${pc_dir} /)
  string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
  set(PC_PREFIX "\${pcfiledir}/${pc_to_prefix}")
  set(PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# simplenet_install_pc(<name> <description> <requires> <library>)
function(simplenet_install_pc name description requires library)
  set(PC_NAME ${name})
  set(PC_DESCRIPTION "${description}")
  set(PC_REQUIRES "")
  if(requires)
    list(JOIN requires ", " requires)
    set(PC_REQUIRES "Requires: ${requires}\n")
  endif()
  set(PC_LIBRARY ${library})
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/simplenet.pc.in ${generated}/${name}.pc @ONLY)
  install(FILES ${generated}/${name}.pc DESTINATION ${pc_dir})
endfunction()

# Requires.private would be enough for a static library if everybody passed --static. Where no
# shared library is installed, a plain `pkg-config --libs` has to link too, so there it is Requires.
# For a shared library it is left out, because pkg-config would demand liburing's own .pc for
# --cflags.
set(requires "")
if(SIMPLENET_NEEDS_LIBURING)
  set(requires "liburing >= 2.3")
endif()
if(SIMPLENET_EXPERIMENTAL_LIBRARY)
  set(PC_EXPERIMENTAL_LIBRARY " -fexperimental-library")
endif()
simplenet_install_pc(simplenet "${PROJECT_DESCRIPTION}" "${requires}" simplenet)
if(SIMPLENET_TLS)
  set(requires "simplenet = ${PROJECT_VERSION}")
  if(SIMPLENET_NEEDS_OPENSSL)
    list(APPEND requires "libssl >= 3.0" "libcrypto >= 3.0")
  endif()
  simplenet_install_pc(simplenet-tls "TLS for libsimplenet" "${requires}" simplenet-tls)
endif()
if(SIMPLENET_HTTP)
  set(requires "simplenet = ${PROJECT_VERSION}")
  if(SIMPLENET_TLS)
    set(requires "simplenet-tls = ${PROJECT_VERSION}")
  endif()
  if(SIMPLENET_NEEDS_ZLIB)
    list(APPEND requires zlib)
  endif()
  simplenet_install_pc(simplenet-http "HTTP for libsimplenet" "${requires}" simplenet-http)
endif()
