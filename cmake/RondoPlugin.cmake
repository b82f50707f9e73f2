# rondo_line_tables(variable): what to compile with so that `inspect --timeline` and `debug --nan` can
# tell lines. Nothing where the flags already say what is wanted of debugging information.
function(rondo_line_tables variable)
  set(${variable} $<$<NOT:$<CONFIG:Debug,RelWithDebInfo>>:-g1> PARENT_SCOPE)
  string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" flags_of_type)
  if("${CMAKE_CXX_FLAGS} ${${flags_of_type}}" MATCHES "(^| )-g")
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()

# rondo_add_plugin(name sources...): a shared library lib<name>.so with components of your own,
# which a config names in `plugins = ["lib<name>.so"]`. Its source uses RONDO_PLUGIN of
# <rondo/plugin.h>.
function(rondo_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_link_libraries(${name} PRIVATE rondo::rondo)
  rondo_line_tables(line_tables)
  target_compile_options(${name} BEFORE PRIVATE ${line_tables})
endfunction()
