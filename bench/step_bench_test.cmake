# step_bench prints a JSON line for each of its backends and warns of nothing, such as of a step that
# goes on eagerly; all train to one loss.
#
#   cmake -D BENCH=step_bench -D WORKLOAD=tiny -D BACKENDS="libtorch traced" -D UPDATES="20 50 3"
#         -P step_bench_test.cmake
#
# UPDATES: before the clock starts, of a round, rounds.

separate_arguments(BACKENDS)
separate_arguments(UPDATES)
list(POP_FRONT UPDATES warm_up steps rounds)
execute_process(
  COMMAND ${BENCH} --workload=${WORKLOAD} --warm-up=${warm_up} --steps=${steps} --rounds=${rounds}
          --backend ${BACKENDS}
  OUTPUT_VARIABLE output
  ERROR_VARIABLE log
  COMMAND_ERROR_IS_FATAL ANY)
# The warning about the machine's BLAS is not about the step.
string(REGEX REPLACE "[^\n]*warning: this OpenBLAS [^\n]*\n" "" log "${log}")
if(log MATCHES "warning")
  message(FATAL_ERROR "${WORKLOAD}: expected a step that is traced without a word, got ${log}")
endif()
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

list(TRANSFORM BACKENDS PREPEND "rondo-" OUTPUT_VARIABLE expected)
string(REPLACE "rondo-libtorch" "libtorch" expected "${expected}")
if(NOT peers STREQUAL expected)
  message(FATAL_ERROR "expected a line for each backend, got those of: ${peers}")
endif()
list(REMOVE_DUPLICATES losses)
list(LENGTH losses different)
if(NOT different EQUAL 1)
  message(FATAL_ERROR "${WORKLOAD}: expected one final loss, got ${losses}")
endif()
