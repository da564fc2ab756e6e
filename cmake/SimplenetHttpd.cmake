# simplenet_has_httpd_libraries: whether the libraries of the program `simplenet-httpd` can be used. An
# installed one may have been compiled for another standard library, or another machine.

include(CheckCXXSourceCompiles)
include(SimplenetSpdlog)

find_package(tomlplusplus 3.3 QUIET)
find_package(CLI11 2.1 QUIET)
set(simplenet_has_httpd_libraries OFF)
if(simplenet_has_spdlog AND tomlplusplus_FOUND AND CLI11_FOUND)
  set(CMAKE_REQUIRED_LIBRARIES tomlplusplus::tomlplusplus)
  check_cxx_source_compiles("
    #include <toml++/toml.h>
    int main() { return toml::parse(\"a = 0\").empty(); }" simplenet_has_toml)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(simplenet_has_toml)
    set(simplenet_has_httpd_libraries ON)
  endif()
endif()
