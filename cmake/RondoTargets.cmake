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
      -fno-omit-frame-pointer -O1)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # gcc loses track of what is initialised among the checks, and says so of moved variants.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    target_link_options(${target} PRIVATE -fsanitize=${RONDO_SANITIZE})
  endif()
endfunction()

# What rondo's own files are compiled with: the library's, and those of its parts that are compiled apart.
function(rondo_configure_library target)
  rondo_compile(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>
    $<INSTALL_INTERFACE:include/rondo>
    $<INSTALL_INTERFACE:include/rondo/internal>)  # what public headers include
  target_include_directories(${target} SYSTEM BEFORE PUBLIC $<BUILD_INTERFACE:${RONDO_SHADOWS_DIR}>)
  # TorchConfig.cmake fills variables; its targets' include folders are the system's own.
  target_include_directories(${target} SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(${target} PUBLIC ${torch_flags})
  # PyTorch's builds of LibTorch export parts of an older C++ library (PyTorch issue 133437); the
  # system's comes first, or std::filesystem::remove_all ends in a crash.
  target_link_libraries(${target}
    PUBLIC stdc++ ${TORCH_LIBRARIES}
    PRIVATE fmt::fmt spdlog::spdlog Eigen3::Eigen ZLIB::ZLIB zstd::libzstd_shared JPEG::JPEG PNG::PNG
            Threads::Threads tomlplusplus::tomlplusplus ${CMAKE_DL_LIBS})
endfunction()

# For files that are compiled alone, and for groups of small ones. Four of five read the tensor's header,
# and most call an operator. Not for clang, whose build shows a file that does not include what it uses.
function(rondo_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} PRIVATE
      <ATen/core/Tensor.h> <ATen/ops/add.h> <torch/library.h> <fmt/format.h>
      <filesystem> <functional> <map> <string> <unordered_map> <variant> <vector>)
  endif()
endfunction()

# Compiles files together, up to eight at a time: most of a file's time goes to LibTorch's headers and to
# what they instantiate. A group has files of one folder, or such that include LibTorch's modules, which
# take longest. Files with options of their own stay alone. RONDO_UNITY_BUILD=OFF compiles each file alone.
function(rondo_compile_together target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(kinds "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    file(STRINGS ${source} heavy REGEX "^#include (<torch/(torch\\.h|nn/|optim/)|\"(models/module_model|pymarlin/module_interface)\\.h)")
    if(heavy)
      set(kind modules)
    else()
      cmake_path(GET source PARENT_PATH kind)
      cmake_path(RELATIVE_PATH kind BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER ${kind} kind)
    endif()
    list(APPEND kinds ${kind})
    list(APPEND of_${kind} ${source})
  endforeach()
  list(REMOVE_DUPLICATES kinds)
  foreach(kind IN LISTS kinds)
    list(LENGTH of_${kind} count)
    math(EXPR groups "(${count} + 7) / 8")
    set(number 0)
    foreach(source IN LISTS of_${kind})
      math(EXPR group "${number} * ${groups} / ${count}")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
        UNITY_GROUP ${kind}_${group})
      math(EXPR number "${number} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${RONDO_UNITY_BUILD} UNITY_BUILD_MODE GROUP)
  if(RONDO_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc takes files that a source file includes for headers, where such a class would be at fault.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# rondo_part(name options sources...): files of the library that are compiled with options of their own.
function(rondo_part name options)
  add_library(${name} OBJECT ${ARGN})
  rondo_configure_library(${name})
  target_compile_options(${name} PRIVATE ${options})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(rondo PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()

# How tests are compiled: without optimization, which takes half the time.
function(rondo_compile_tests target)
  rondo_compile(${target})
  target_compile_options(${target} PRIVATE -O0)
  rondo_compile_together(${target})
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
