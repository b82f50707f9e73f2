# A part of the build. Wants rondo, the program, and pages_dir. Has the program print its shell
# completion and its manual pages: rondo(1), and each page that rondo(1) refers to.

function(print_into file)
  execute_process(COMMAND ${rondo} ${ARGN} OUTPUT_FILE ${pages_dir}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${pages_dir})
file(MAKE_DIRECTORY ${pages_dir}/man1)
foreach(shell IN ITEMS bash zsh fish)
  print_into(rondo.${shell} completion ${shell})
endforeach()
print_into(man1/rondo.1 man)
file(STRINGS ${pages_dir}/man1/rondo.1 references REGEX "^\\.BR rondo")
foreach(reference IN LISTS references)
  string(REPLACE "\\-" "-" page "${reference}")
  string(REGEX REPLACE "^\\.BR rondo-([^ ]+) .*" "\\1" command "${page}")
  print_into(man1/rondo-${command}.1 man ${command})
endforeach()
