# A part of `cmake --install`. Wants source_dir, header_dir and public_headers. Installs these, and
# under internal/ every header that they include: a program finds both, and only names the former.

cmake_policy(VERSION 3.25)
set(pending ${public_headers})
set(found "")
while(pending)
  list(POP_FRONT pending header)
  if(header IN_LIST found OR NOT EXISTS ${source_dir}/${header})
    continue()  # core/version.h is written by CMake and installed on its own
  endif()
  list(APPEND found ${header})
  file(STRINGS ${source_dir}/${header} lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    list(APPEND pending ${included})
  endforeach()
endwhile()

foreach(header IN LISTS found)
  cmake_path(GET header PARENT_PATH folder)
  if(NOT header IN_LIST public_headers)
    set(folder internal/${folder})
  endif()
  file(INSTALL ${source_dir}/${header} DESTINATION ${header_dir}/${folder})
endforeach()
