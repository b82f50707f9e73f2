#!/usr/bin/env bash
# Installs what is missing, builds what is needed, and runs rondo:
#
#   ./run.sh fit configs/recipes/quickstart.toml     any command of rondo (--help lists them)
#   ./run.sh test [ctest arguments]                  builds everything and runs all tests
#
# Each stage shows one line; what it prints goes to run.log in the build folder.
#
# RONDO_BUILD_DIR    where to build (build/ beside this file)
# RONDO_CMAKE_FLAGS  more arguments for CMake; configures again when set
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${RONDO_BUILD_DIR:-$root/build}
log=$build/run.log

# Shows how far ninja is, on a terminal; prints nothing else.
count_steps() {
  local line
  while IFS= read -r line; do
    if [[ -t 2 && $line =~ ^\[([0-9]+/[0-9]+)\] ]]; then
      printf '\r%s ... %s' "$1" "${BASH_REMATCH[1]}" >&2
    fi
  done
}

# stage NAME COMMAND...: one line on standard error, since standard output is rondo's alone (`--json`
# promises its last line). Ends the script when the command fails, with the end of the log and its name.
stage() {
  local name=$1 begin=$SECONDS
  shift
  mkdir -p "$build"
  printf '%s ...' "$name" >&2
  if "$@" 2>&1 </dev/null | tee "$log" | count_steps "$name"; then
    echo " done in $((SECONDS - begin)) s" >&2
  else
    echo " failed" >&2
    tail -n 40 "$log" >&2
    echo "run.sh: $name failed. The whole output is in $log" >&2
    exit 1
  fi
}

configure() {
  if [[ ! -f $build/build.ninja || $root/packages.txt -nt $build/build.ninja ]]; then
    source "$root/cmake/install_packages.sh"
    # shellcheck disable=SC2046  # a list of words
    install_packages $(packages_in "$root/packages.txt") || exit 1
  elif [[ -z ${RONDO_CMAKE_FLAGS:-} ]]; then
    return
  fi
  # shellcheck disable=SC2086  # a list of words
  stage "Configuring" cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    ${RONDO_CMAKE_FLAGS:-}
  touch "$build/build.ninja" # CMake leaves it as it is when nothing changed
}

# Builds the given targets; silent when they are up to date.
build_targets() {
  if ! ninja -C "$build" -n "$@" | grep -q 'no work to do'; then
    stage "Building" ninja -C "$build" -j "$(nproc)" "$@"
  fi
}

configure
if [[ ${1:-} == test ]]; then
  shift
  build_targets all
  # Tests run side by side; threads that spin while they wait would take each other's cores.
  export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-0}
  exec ctest --test-dir "$build" -j "$(nproc)" --output-on-failure "$@"
fi
build_targets rondo_cli rondo-engine
exec "$build/bin/rondo" "$@"
