# Finds liburing: the target Liburing::liburing, and Liburing_FOUND, Liburing_VERSION. Uses
# pkg-config if it is available, otherwise the header and library. Installed with the package,
# because programs that link the static library need it too.

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_Liburing QUIET liburing)
endif()

find_path(Liburing_INCLUDE_DIR liburing.h HINTS ${PC_Liburing_INCLUDE_DIRS})
find_library(Liburing_LIBRARY uring HINTS ${PC_Liburing_LIBRARY_DIRS})
mark_as_advanced(Liburing_INCLUDE_DIR Liburing_LIBRARY)

if(Liburing_INCLUDE_DIR)
  if(EXISTS ${Liburing_INCLUDE_DIR}/liburing/io_uring_version.h)  # 2.4 and later
    file(STRINGS ${Liburing_INCLUDE_DIR}/liburing/io_uring_version.h liburing_numbers
      REGEX "IO_URING_VERSION_(MAJOR|MINOR) +[0-9]+")
    string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2"
      Liburing_VERSION "${liburing_numbers}")
  elseif(PC_Liburing_VERSION)
    set(Liburing_VERSION ${PC_Liburing_VERSION})
  else()
    # io_uring_get_events() appeared in 2.3, which did not state its version yet.
    file(STRINGS ${Liburing_INCLUDE_DIR}/liburing.h liburing_marker REGEX "io_uring_get_events")
    if(liburing_marker)
      set(Liburing_VERSION 2.3)
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Liburing
  REQUIRED_VARS Liburing_LIBRARY Liburing_INCLUDE_DIR
  VERSION_VAR Liburing_VERSION)

if(Liburing_FOUND AND NOT TARGET Liburing::liburing)
  add_library(Liburing::liburing UNKNOWN IMPORTED)
  set_target_properties(Liburing::liburing PROPERTIES
    IMPORTED_LOCATION ${Liburing_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Liburing_INCLUDE_DIR})
endif()
