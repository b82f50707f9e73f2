# step_bench prints a JSON line for each of its backends and nothing else, and all train to one loss.

execute_process(
  COMMAND ${BENCH} --workload=tiny --steps=50 --rounds=3
          --backend libtorch eager traced traced-interpreter fit
  OUTPUT_VARIABLE output
  COMMAND_ERROR_IS_FATAL ANY)
string(STRIP "${output}" output)
string(REPLACE "\n" ";" lines "${output}")

set(peers "")
set(losses "")
foreach(line IN LISTS lines)
  string(JSON peer GET "${line}" peer)
  string(JSON loss GET "${line}" final_loss)
  string(JSON time GET "${line}" us_per_step)
  if(NOT time GREATER 0)
    message(FATAL_ERROR "${peer}: expected a step to take its time, got ${time} us")
  endif()
  list(APPEND peers ${peer})
  list(APPEND losses ${loss})
endforeach()

if(NOT peers STREQUAL "libtorch;rondo-eager;rondo-traced;rondo-traced-interpreter;rondo-fit")
  message(FATAL_ERROR "expected a line for each backend, got those of: ${peers}")
endif()
list(REMOVE_DUPLICATES losses)
list(LENGTH losses different)
if(NOT different EQUAL 1)
  message(FATAL_ERROR "expected one final loss, got ${losses}")
endif()
