# What `cmake --install` puts where. Headers keep their folders under include/rondo, so that
# <rondo/core/time.h> and, inside them, "core/time.h" are found as in the source tree.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/rondo)

install(DIRECTORY
    core backends tracing models optim sparsity metrics checkpoint configs data callbacks loops loggers trainer
  DESTINATION ${header_dir}
  FILES_MATCHING PATTERN "*.h"
  PATTERN internal EXCLUDE
  PATTERN recipes EXCLUDE)
install(FILES rondo.h module.h plugin.h rondo_step.h DESTINATION ${header_dir})
install(FILES cli/cli_main.h DESTINATION ${header_dir}/cli)
install(FILES ${PROJECT_BINARY_DIR}/include/core/version.h DESTINATION ${header_dir}/core)
install(DIRECTORY configs/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/rondo)

file(RELATIVE_PATH lib_from_engine
  ${CMAKE_INSTALL_FULL_LIBEXECDIR}/rondo ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(rondo PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  INSTALL_RPATH "$ORIGIN"
  INSTALL_RPATH_USE_LINK_PATH ON)  # a LibTorch outside the system's folders
install(TARGETS rondo EXPORT rondoTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(RONDO_BUILD_CLI)
  set_target_properties(rondo-engine PROPERTIES
    INSTALL_RPATH "$ORIGIN/${lib_from_engine}"
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS rondo_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS rondo-engine RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rondo)
endif()

install(EXPORT rondoTargets NAMESPACE rondo:: DESTINATION ${package_dir})
configure_package_config_file(cmake/rondoConfig.cmake.in ${PROJECT_BINARY_DIR}/rondoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/rondoConfig.cmake
    ${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake
    cmake/RondoPlugin.cmake
  DESTINATION ${package_dir})
