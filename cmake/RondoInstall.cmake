# What `cmake --install` puts where, in three components, of which RondoPackages.cmake makes packages.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(RondoHeaders)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/rondo)

# development: headers and what CMake finds. Headers keep their folders under include/rondo, so that
# <rondo/core/time.h> and, inside them, "core/time.h" are found as in the source tree.
install(CODE "
  set(source_dir \"${PROJECT_SOURCE_DIR}\")
  set(header_dir \"\${CMAKE_INSTALL_PREFIX}/${header_dir}\")
  set(public_headers \"${RONDO_PUBLIC_HEADERS}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")"
  COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/include/core/version.h DESTINATION ${header_dir}/core
  COMPONENT development)
install(FILES rondo.f90 DESTINATION ${header_dir} COMPONENT development)  # compiled by its user

file(RELATIVE_PATH lib_from_engine
  ${CMAKE_INSTALL_FULL_LIBEXECDIR}/rondo ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(rondo PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  INSTALL_RPATH "$ORIGIN"
  INSTALL_RPATH_USE_LINK_PATH ON)  # a LibTorch outside the system's folders
install(TARGETS rondo EXPORT rondoTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT library NAMELINK_COMPONENT development)

install(EXPORT rondoTargets NAMESPACE rondo:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/rondoConfig.cmake.in ${PROJECT_BINARY_DIR}/rondoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/rondoConfig.cmake
    ${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake
    cmake/RondoPlugin.cmake
  DESTINATION ${package_dir} COMPONENT development)

# program: what a user types, with its recipes, completion and manual pages.
if(RONDO_BUILD_CLI)
  set_target_properties(rondo-engine PROPERTIES
    INSTALL_RPATH "$ORIGIN/${lib_from_engine}"
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS rondo_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(TARGETS rondo-engine RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rondo COMPONENT program)
  install(DIRECTORY ${RONDO_PAGES_DIR}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  install(FILES ${RONDO_PAGES_DIR}/rondo.bash RENAME rondo
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
  # Debian's zsh looks into another folder for packages than for what is installed by hand.
  set(zsh_folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(zsh_folder vendor-completions)
  endif()
  install(FILES ${RONDO_PAGES_DIR}/rondo.zsh RENAME _rondo
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_folder} COMPONENT program)
  install(FILES ${RONDO_PAGES_DIR}/rondo.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
install(DIRECTORY configs/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/rondo COMPONENT program)
