# What rondo stands on. All of it comes from the system's packages; see run.sh for their names.

if(PROJECT_IS_TOP_LEVEL)
  find_program(RONDO_CCACHE ccache)
  if(RONDO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Without these it keeps nothing that reads a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros ${RONDO_CCACHE})
  endif()
endif()

# Event files of TensorBoard are Protobuf's. It is looked for before Torch, which makes an empty target
# of that name.
set(RONDO_WITH_TENSORBOARD AUTO CACHE STRING "Write event files of TensorBoard: AUTO, ON or OFF")
set_property(CACHE RONDO_WITH_TENSORBOARD PROPERTY STRINGS AUTO ON OFF)
set(RONDO_HAS_TENSORBOARD OFF)
if(RONDO_WITH_TENSORBOARD STREQUAL "ON")
  find_package(Protobuf REQUIRED)
elseif(NOT RONDO_WITH_TENSORBOARD STREQUAL "OFF")
  find_package(Protobuf QUIET)
endif()
if(TARGET protobuf::protoc)
  set(RONDO_HAS_TENSORBOARD ON)
else()
  message(STATUS "Without TENSORBOARD: libprotobuf-dev and protobuf-compiler were not found, or RONDO_WITH_TENSORBOARD is OFF")
endif()
find_package(Torch REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(zstd REQUIRED)
find_package(Threads REQUIRED)

# Debian compiles cpp-httplib with all that it can do; its classes are laid out accordingly. What its
# header calls of OpenSSL is linked by who includes it.
find_package(OpenSSL REQUIRED)
find_path(RONDO_HTTPLIB_INCLUDE_DIR httplib.h REQUIRED)
find_library(RONDO_HTTPLIB_LIBRARY cpp-httplib REQUIRED)
add_library(rondo_httplib INTERFACE)
target_include_directories(rondo_httplib SYSTEM INTERFACE ${RONDO_HTTPLIB_INCLUDE_DIR})
target_compile_definitions(rondo_httplib INTERFACE
  CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
target_link_libraries(rondo_httplib INTERFACE
  ${RONDO_HTTPLIB_LIBRARY} OpenSSL::SSL OpenSSL::Crypto Threads::Threads)

# PyTorch's builds of LibTorch bring headers of other libraries along, of other versions than what
# rondo links, in a folder that is searched before the system's. A folder of links comes first of all.
set(RONDO_SHADOWS_DIR ${PROJECT_BINARY_DIR}/shadows)
function(rondo_shadow folder include_dir)
  list(GET TORCH_INCLUDE_DIRS 0 of_torch)
  file(REAL_PATH ${of_torch}/${folder} brought_along)
  file(REAL_PATH ${include_dir}/${folder} wanted)
  if(EXISTS ${brought_along} AND NOT brought_along STREQUAL wanted)
    file(CREATE_LINK ${wanted} ${RONDO_SHADOWS_DIR}/${folder} SYMBOLIC)
  endif()
endfunction()
file(MAKE_DIRECTORY ${RONDO_SHADOWS_DIR})
get_target_property(fmt_include_dir fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
rondo_shadow(fmt ${fmt_include_dir})
if(RONDO_HAS_TENSORBOARD)
  rondo_shadow(google ${Protobuf_INCLUDE_DIRS})
endif()

# Convolutions are run by the oneDNN that LibTorch calls, where it is a library beside LibTorch and
# its headers are there: another one would have other bits, and threads of its own.
find_path(RONDO_ONEDNN_INCLUDE_DIR dnnl.hpp)
find_library(RONDO_ONEDNN_LIBRARY dnnl)
set(RONDO_HAS_ONEDNN OFF)
if(RONDO_ONEDNN_INCLUDE_DIR AND RONDO_ONEDNN_LIBRARY AND CMAKE_READELF)
  get_target_property(torch_cpu torch_cpu LOCATION)
  execute_process(COMMAND ${CMAKE_READELF} -d ${torch_cpu} OUTPUT_VARIABLE of_torch ERROR_QUIET)
  execute_process(
    COMMAND ${CMAKE_READELF} -d ${RONDO_ONEDNN_LIBRARY} OUTPUT_VARIABLE of_onednn ERROR_QUIET)
  string(REGEX MATCH "Library soname: \\[([^]]+)\\]" soname "${of_onednn}")
  string(FIND "${of_torch}" "Shared library: [${CMAKE_MATCH_1}]" place)
  if(soname AND NOT place EQUAL -1)
    set(RONDO_HAS_ONEDNN ON)
  endif()
endif()
if(NOT RONDO_HAS_ONEDNN)
  message(STATUS "Convolutions are run by LibTorch's operators: no oneDNN that it shares")
endif()
