# rondo_add_plugin(name sources...): a shared library lib<name>.so with components of your own,
# which a config names in `plugins = ["lib<name>.so"]`. Its source uses RONDO_PLUGIN of
# <rondo/plugin.h>.
function(rondo_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_link_libraries(${name} PRIVATE rondo::rondo)
endfunction()
