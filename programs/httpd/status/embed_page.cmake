# cmake -D PAGE=status.html -D OUTPUT=status_page.cpp -P embed_page.cmake
# Makes a C++ source of the page, with the hashes of its script and style.

file(READ ${PAGE} page)
foreach(part IN ITEMS script style)
  # Exactly what stands between the tags: that is what a browser hashes (CSP3, section 6.7.3).
  string(FIND "${page}" "<${part}>" begin)
  string(FIND "${page}" "</${part}>" end)
  if(begin LESS 0 OR end LESS begin)
    message(FATAL_ERROR "${PAGE} has no <${part}>")
  endif()
  string(LENGTH "<${part}>" length)
  math(EXPR begin "${begin} + ${length}")
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${page}" ${begin} ${length} text)
  string(SHA256 hex "${text}")

  # Base64: three bytes, which are six digits, become four characters.
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(APPEND hex "00") # 32 bytes are one short of 33; the last character becomes "="
  set(base64)
  foreach(from RANGE 0 65 6)
    string(SUBSTRING ${hex} ${from} 6 digits)
    math(EXPR bits "0x${digits}")
    foreach(shift IN ITEMS 18 12 6 0)
      math(EXPR index "(${bits} >> ${shift}) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 character)
      string(APPEND base64 ${character})
    endforeach()
  endforeach()
  string(REGEX REPLACE ".$" "=" ${part}_hash ${base64})
endforeach()

# A literal for each line: the compiler joins them.
string(REPLACE "\\" "\\\\" page "${page}")
string(REPLACE "\"" "\\\"" page "${page}")
string(REPLACE "??" "?\\?" page "${page}") # no trigraphs
string(REPLACE "\n" "\\n\"\n    \"" page "${page}")
file(WRITE ${OUTPUT} "// Made of status.html by embed_page.cmake.

#include \"httpd/status/status_page.hpp\"

namespace httpd {

const std::string_view status_page =
    \"${page}\";
const std::string_view status_script_hash = \"${script_hash}\";
const std::string_view status_style_hash = \"${style_hash}\";

} // namespace httpd
")
