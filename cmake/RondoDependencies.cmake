# What rondo stands on. All of it comes from the system's packages; see run.sh for their names.

if(PROJECT_IS_TOP_LEVEL)
  find_program(RONDO_CCACHE ccache)
  if(RONDO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Without these it keeps nothing that reads a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros ${RONDO_CCACHE})
  endif()
endif()

find_package(Torch REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(zstd REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Threads REQUIRED)
