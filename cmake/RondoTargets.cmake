# How rondo's own targets are compiled.

set(RONDO_WARNINGS -Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Loops ask to be taken in vectors (core/vector_loop.h); those that cannot be are right as well.
  list(APPEND RONDO_WARNINGS -Wno-pass-failed)
endif()
if(RONDO_WERROR)
  list(APPEND RONDO_WARNINGS -Werror)
endif()

# The same settings for the library, programs and tests; never for what links rondo.
function(rondo_compile target)
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${RONDO_WARNINGS})
  if(RONDO_SANITIZE)
    # vptr asks for the type information of LibTorch's classes, which it does not export. What is
    # undefined ends the program: a test would pass with a message only.
    target_compile_options(${target} PRIVATE
      -fsanitize=${RONDO_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # gcc loses track of what is initialised among the checks, and says so of moved variants.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    target_link_options(${target} PRIVATE -fsanitize=${RONDO_SANITIZE})
  endif()
endfunction()

function(rondo_configure_library)
  rondo_compile(rondo)
  # Inside the tree, <rondo/core/time.h> reaches core/time.h through one link, as it does installed.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/rondo SYMBOLIC)
  target_include_directories(rondo PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>
    $<INSTALL_INTERFACE:include/rondo>
    $<INSTALL_INTERFACE:include/rondo/internal>)  # what public headers include
  target_include_directories(rondo SYSTEM BEFORE PUBLIC $<BUILD_INTERFACE:${RONDO_SHADOWS_DIR}>)
  # TorchConfig.cmake fills variables; its targets' include folders are the system's own.
  target_include_directories(rondo SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(rondo PUBLIC ${torch_flags})
  # PyTorch's builds of LibTorch export parts of an older C++ library (PyTorch issue 133437); the
  # system's comes first, or std::filesystem::remove_all ends in a crash.
  target_link_libraries(rondo
    PUBLIC stdc++ ${TORCH_LIBRARIES}
    PRIVATE fmt::fmt spdlog::spdlog Eigen3::Eigen ZLIB::ZLIB zstd::libzstd_shared JPEG::JPEG PNG::PNG
            protobuf::libprotobuf Threads::Threads tomlplusplus::tomlplusplus ${CMAKE_DL_LIBS})
  # Four of five files read the tensor's header, a third of their time. Not for clang, whose build
  # shows a file that does not include what it uses.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(rondo PRIVATE
      <ATen/core/Tensor.h> <fmt/format.h>
      <filesystem> <functional> <map> <string> <unordered_map> <variant> <vector>)
  endif()
endfunction()

# How tests are compiled: without optimization, which takes half the time, and with LibTorch's
# headers precompiled where a test includes one; others are sooner done without.
function(rondo_compile_tests target)
  rondo_compile(${target})
  target_compile_options(${target} PRIVATE -O0)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} heavy REGEX "^#include <torch/")
    if(NOT heavy)
      set_source_files_properties(${source} PROPERTIES
        SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "-include;${PROJECT_SOURCE_DIR}/tests/support/doctest_macros.h")
    endif()
  endforeach()
endfunction()

# One test program for each folder of tests/, one ctest entry for each file: tests/core/time_test.cpp holds
# suite "core/time", tests/tracing/plan/trial_test.cpp "tracing/plan/trial".
function(rondo_test folder)
  set(target ${folder}_tests)
  add_executable(${target} ${ARGN})
  rondo_compile_tests(${target})
  target_link_libraries(${target} PRIVATE rondo_test_support)
  target_precompile_headers(${target} REUSE_FROM rondo_test_support)
  foreach(source IN LISTS ARGN)
    string(REGEX REPLACE "_test\\.cpp$" "" suite ${source})
    add_test(NAME ${folder}/${suite} COMMAND ${target} --test-suite=${folder}/${suite} --no-skip=false)
    set_tests_properties(${folder}/${suite} PROPERTIES LABELS ${folder} TIMEOUT 1800)
  endforeach()
endfunction()
