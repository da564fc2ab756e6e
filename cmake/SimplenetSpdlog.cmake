# simplenet_has_spdlog: whether the example `logging` can be built. An installed spdlog may have been
# compiled for another standard library, or another machine.

include(CheckCXXSourceCompiles)

find_package(spdlog QUIET)
if(spdlog_FOUND)
  set(CMAKE_REQUIRED_LIBRARIES spdlog::spdlog)
  check_cxx_source_compiles("
    #include <spdlog/spdlog.h>
    int main() { spdlog::info(\"{}\", 1); }" simplenet_has_spdlog)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
