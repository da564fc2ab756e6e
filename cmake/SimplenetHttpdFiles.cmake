# What is installed beside simplenet-httpd: units of systemd, the man page, and an example.

# Relative, so that an installation writes nowhere but below its prefix. systemd reads
# /usr/lib/systemd/system and /usr/local/lib/systemd/system.
set(SIMPLENET_SYSTEMD_UNIT_DIR lib/systemd/system CACHE STRING
  "Where the units of simplenet-httpd are installed; empty: nowhere")

# `Type=notify-reload` needs systemd 253. Debian 12 has 252, so the version here decides; without one
# the unit is for both.
if(NOT DEFINED SIMPLENET_SYSTEMD_VERSION)
  execute_process(COMMAND systemctl --version
    OUTPUT_VARIABLE printed ERROR_QUIET RESULT_VARIABLE failed)
  set(version 0)
  if(NOT failed AND printed MATCHES "^systemd ([0-9]+)")
    set(version ${CMAKE_MATCH_1})
  endif()
  set(SIMPLENET_SYSTEMD_VERSION ${version} CACHE STRING
    "The version of systemd that the unit of simplenet-httpd is for; 0: any")
endif()
if(SIMPLENET_SYSTEMD_VERSION GREATER_EQUAL 253)
  set(SIMPLENET_SYSTEMD_TYPE "Type=notify-reload")
else()
  string(CONCAT SIMPLENET_SYSTEMD_TYPE
    "# From systemd 253 on, Type=notify-reload replaces both lines.\n"
    "Type=notify\n"
    "ExecReload=/bin/kill -HUP $MAINPID")
endif()
# simplenet-httpd@NAME serves /etc/simplenet-httpd/NAME.toml, beside simplenet-httpd.
set(units "")
foreach(unit IN ITEMS simplenet-httpd simplenet-httpd@)
  set(SIMPLENET_HTTPD_CONFIG httpd.toml)
  if(unit MATCHES "@$")
    set(SIMPLENET_HTTPD_CONFIG %i.toml)
  endif()
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/systemd/simplenet-httpd.service.in
    ${CMAKE_CURRENT_BINARY_DIR}/${unit}.service @ONLY)
  list(APPEND units ${CMAKE_CURRENT_BINARY_DIR}/${unit}.service)
endforeach()

if(SIMPLENET_SYSTEMD_UNIT_DIR)
  install(FILES ${units} systemd/simplenet-httpd.socket
    DESTINATION ${SIMPLENET_SYSTEMD_UNIT_DIR} COMPONENT httpd)
endif()
install(FILES simplenet-httpd.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT httpd)
# Not in /etc: a later installation would overwrite what the administrator has changed.
install(DIRECTORY example DESTINATION ${CMAKE_INSTALL_DATADIR}/simplenet-httpd COMPONENT httpd)
