# What rondo can do without, each with libraries of its own. RONDO_WITH_<NAME> is AUTO (built where the
# libraries are found), ON (an error where they are not) or OFF. Such a part is source files of the
# folder optional/ of what uses it; where it is not built, no_<name>.cpp takes their place, and using it
# is an error that names package and option.

# rondo_optional(<NAME> <folder> <Debian packages> MODULES <pkg-config modules> SOURCES <names>)
# Only these files see the libraries' headers, so that nothing else is built again with them.
function(rondo_optional name folder packages)
  cmake_parse_arguments(PARSE_ARGV 3 part "" "" "MODULES;SOURCES")
  set(RONDO_WITH_${name} AUTO CACHE STRING "Build what ${packages} is for: AUTO, ON or OFF")
  set_property(CACHE RONDO_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  set(found OFF)
  if(NOT RONDO_WITH_${name} STREQUAL OFF AND PkgConfig_FOUND)
    pkg_check_modules(RONDO_${name} QUIET ${part_MODULES})
    set(found ${RONDO_${name}_FOUND})
  endif()
  if(found)
    foreach(source IN LISTS part_SOURCES)
      rondo_see_optional(${name} ${PROJECT_SOURCE_DIR}/${folder}/${source}.cpp)
      target_sources(rondo PRIVATE ${PROJECT_SOURCE_DIR}/${folder}/${source}.cpp)
    endforeach()
    target_link_libraries(rondo PRIVATE ${RONDO_${name}_LINK_LIBRARIES})
  elseif(RONDO_WITH_${name} STREQUAL "ON")
    message(FATAL_ERROR
      "RONDO_WITH_${name} is ON, but ${part_MODULES} was not found: install ${packages} and pkg-config")
  else()
    string(TOLOWER ${name} lower)
    target_sources(rondo PRIVATE ${PROJECT_SOURCE_DIR}/${folder}/no_${lower}.cpp)
    message(STATUS "Without ${name}: ${packages} was not found, or RONDO_WITH_${name} is OFF")
  endif()
  if(folder STREQUAL data/optional)
    set(is_built false)
    if(found)
      set(is_built true)
    endif()
    set_property(GLOBAL APPEND_STRING PROPERTY RONDO_OPTIONAL_READERS
      "{\"${name}\", \"${packages}\", ${is_built}}, ")
  endif()
  set(RONDO_HAS_${name} ${found} PARENT_SCOPE)
  set(RONDO_${name}_LINK_LIBRARIES ${RONDO_${name}_LINK_LIBRARIES} PARENT_SCOPE)  # for tests, which write files
endfunction()

# Lets one source file of the current directory include the headers of an optional library.
function(rondo_see_optional name source)
  set(options ${RONDO_${name}_CFLAGS_OTHER})
  foreach(folder IN LISTS RONDO_${name}_INCLUDE_DIRS)
    list(APPEND options -isystem ${folder})
  endforeach()
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${options})
endfunction()

find_package(PkgConfig QUIET)
rondo_optional(HDF5 data/optional libhdf5-dev MODULES hdf5 SOURCES hdf5_file)
rondo_optional(SQLITE data/optional libsqlite3-dev MODULES sqlite3 SOURCES sqlite_rows)
rondo_optional(WEBP data/optional libwebp-dev MODULES libwebp SOURCES webp_codec)
rondo_optional(SNDFILE data/optional libsndfile1-dev MODULES sndfile SOURCES sound_file)
rondo_optional(PCRE2 data/optional libpcre2-dev MODULES libpcre2-8 SOURCES word_split)
rondo_optional(CURL remote/optional "libcurl4-openssl-dev and libssl-dev" MODULES libcurl libcrypto
  SOURCES curl_mail curl_transport openssl_digests)

# What `rondo describe` and errors say about readers that were not built.
get_property(RONDO_OPTIONAL_READERS GLOBAL PROPERTY RONDO_OPTIONAL_READERS)
configure_file(${PROJECT_SOURCE_DIR}/data/optional/readers.cpp.in
  ${PROJECT_BINARY_DIR}/optional_readers.cpp @ONLY)
target_sources(rondo PRIVATE ${PROJECT_BINARY_DIR}/optional_readers.cpp)
