# The target simplenet_headers_alone compiles every public header as CMAKE_VERIFY_INTERFACE_HEADER_SETS
# does, in a third of the compilations, for builds that nobody edits.
#
# A header compiles alone if it compiles behind headers that it includes anyway, provided that these
# compile alone: nothing is declared before it that would be missing otherwise. So each compilation is
# a chain of headers, of which each includes the one before it, directly or not.

# simplenet_included_by(<out> <header>): the public headers that it includes, directly or not.
function(simplenet_included_by out header)
  get_property(known GLOBAL PROPERTY simplenet_included_by_${header} SET)
  if(NOT known)
    set(all "")
    file(STRINGS ${PROJECT_SOURCE_DIR}/include/${header} lines REGEX "^#include <simplenet/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include <([^>]*)>.*" "\\1" included "${line}")
      simplenet_included_by(further ${included})
      list(APPEND all ${included} ${further})
    endforeach()
    list(REMOVE_DUPLICATES all)
    set_property(GLOBAL PROPERTY simplenet_included_by_${header} "${all}")
  endif()
  get_property(all GLOBAL PROPERTY simplenet_included_by_${header})
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

# Those that include least come first.
set(simplenet_counted "")
get_property(simplenet_component_headers GLOBAL PROPERTY simplenet_component_headers)
foreach(header IN LISTS simplenet_headers simplenet_component_headers)
  file(RELATIVE_PATH header ${PROJECT_SOURCE_DIR}/include ${header})
  simplenet_included_by(all ${header})
  list(LENGTH all count)
  math(EXPR count "1000 + ${count}")
  list(APPEND simplenet_counted ${count}/${header})
endforeach()
list(SORT simplenet_counted)

set(simplenet_ends "") # of the chains, from those that include least to those that include most
foreach(counted IN LISTS simplenet_counted)
  string(REGEX REPLACE "^[0-9]+/" "" header ${counted})
  simplenet_included_by(all ${header})
  set(text "")
  set(ends ${simplenet_ends})
  list(REVERSE ends)
  foreach(end IN LISTS ends)
    if(end IN_LIST all)
      get_property(text GLOBAL PROPERTY simplenet_chain_${end})
      list(REMOVE_ITEM simplenet_ends ${end})
      break()
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY simplenet_chain_${header} "${text}#include <${header}>\n")
  list(APPEND simplenet_ends ${header})
endforeach()

set(simplenet_chains "")
foreach(end IN LISTS simplenet_ends)
  get_property(text GLOBAL PROPERTY simplenet_chain_${end})
  set(file ${PROJECT_BINARY_DIR}/headers_alone/${end}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  list(APPEND simplenet_chains ${file})
endforeach()
add_library(simplenet_headers_alone OBJECT EXCLUDE_FROM_ALL ${simplenet_chains})
target_link_libraries(simplenet_headers_alone PRIVATE simplenet ${simplenet_component_targets})
target_compile_options(simplenet_headers_alone PRIVATE -g0)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${simplenet_headers} ${simplenet_component_headers})
