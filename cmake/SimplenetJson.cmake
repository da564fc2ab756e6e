# simplenet_has_json: whether the example `http_routes` can be built, which uses nlohmann::json.

include(CheckCXXSourceCompiles)

find_package(nlohmann_json QUIET)
if(nlohmann_json_FOUND)
  set(CMAKE_REQUIRED_LIBRARIES nlohmann_json::nlohmann_json)
  check_cxx_source_compiles("
    #include <nlohmann/json.hpp>
    int main() { return nlohmann::json::parse(\"0\").get<int>(); }" simplenet_has_json)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
