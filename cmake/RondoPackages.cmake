# Debian packages, made by `cpack` in the build folder: librondo0 has the library, librondo-dev headers
# and the CMake package, rondo the programs. Configure with -DCMAKE_INSTALL_PREFIX=/usr first, which
# .ci/packages does.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rondo)
set(CPACK_PACKAGE_CONTACT "rondo maintainers <rondo@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains LibTorch models from C++ or from a TOML file")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library development program)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

# What they need is read from the programs; the library is found in the build folder.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(of_this_version "librondo0 (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME librondo0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
# LibTorch takes any BLAS. The reference one is some 15 times as slow as this one.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libopenblas0-openmp)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library of rondo.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME librondo-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${of_this_version}, libtorch-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and the CMake package of rondo.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME rondo)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${of_this_version}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS libopenblas0-openmp)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "The program rondo, its recipes, manual pages and shell completion.")

foreach(names IN ITEMS library=librondo0 development=librondo-dev program=rondo)
  string(REPLACE "=" ";" names ${names})
  list(GET names 0 component)
  list(GET names 1 package)
  install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    COMPONENT ${component})
endforeach()

include(CPack)
