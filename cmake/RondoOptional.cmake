# Readers of formats whose libraries rondo can do without. RONDO_WITH_<NAME> is AUTO (built where the
# library is found), ON (an error where it is not) or OFF. A reader is one source file of
# data/optional/; where it is not built, no_<name>.cpp takes its place, and using it is an error that
# names package and option.

# rondo_optional(<NAME> <reader> <pkg-config module> <Debian package>)
# Only the reader's file sees the library's headers, so that nothing else is built again with it.
function(rondo_optional name reader module package)
  set(RONDO_WITH_${name} AUTO CACHE STRING "Read ${name} files (${package}): AUTO, ON or OFF")
  set_property(CACHE RONDO_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  set(found OFF)
  if(NOT RONDO_WITH_${name} STREQUAL OFF AND PkgConfig_FOUND)
    pkg_check_modules(RONDO_${name} QUIET ${module})
    set(found ${RONDO_${name}_FOUND})
  endif()
  set(source ${PROJECT_SOURCE_DIR}/data/optional/${reader}.cpp)
  if(found)
    rondo_see_optional(${name} ${source})
    target_link_libraries(rondo PRIVATE ${RONDO_${name}_LINK_LIBRARIES})
  elseif(RONDO_WITH_${name} STREQUAL "ON")
    message(FATAL_ERROR
      "RONDO_WITH_${name} is ON, but ${module} was not found: install ${package} and pkg-config")
  else()
    string(TOLOWER ${name} lower)
    set(source ${PROJECT_SOURCE_DIR}/data/optional/no_${lower}.cpp)
    message(STATUS "No ${name} files: ${package} was not found, or RONDO_WITH_${name} is OFF")
  endif()
  target_sources(rondo PRIVATE ${source})
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
rondo_optional(HDF5 hdf5_file hdf5 libhdf5-dev)
rondo_optional(SQLITE sqlite_rows sqlite3 libsqlite3-dev)
rondo_optional(WEBP webp_codec libwebp libwebp-dev)
