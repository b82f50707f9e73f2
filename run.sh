#!/usr/bin/env bash
# Installs what is missing, builds what is needed, and runs rondo:
#
#   ./run.sh fit configs/recipes/quickstart.toml     any command of rondo (--help lists them)
#   ./run.sh test [ctest arguments]                  builds everything and runs all tests
#
# RONDO_BUILD_DIR    where to build (build/ beside this file)
# RONDO_CMAKE_FLAGS  more arguments for CMake; configures again when set
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${RONDO_BUILD_DIR:-$root/build}

# Standard output is rondo's alone: `--json` promises its last line. All else goes to standard error.
configure() {
  if [[ ! -f $build/build.ninja || $root/packages.txt -nt $build/build.ninja ]]; then
    source "$root/cmake/install_packages.sh"
    # shellcheck disable=SC2046  # a list of words
    install_packages $(packages_in "$root/packages.txt") || exit 1
  elif [[ -z ${RONDO_CMAKE_FLAGS:-} ]]; then
    return
  fi
  # shellcheck disable=SC2086  # a list of words
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release ${RONDO_CMAKE_FLAGS:-} >&2
  touch "$build/build.ninja" # CMake leaves it as it is when nothing changed
}

# Builds the given targets; silent when they are up to date.
build_targets() {
  if ! ninja -C "$build" -n "$@" | grep -q 'no work to do'; then
    ninja -C "$build" -j "$(nproc)" "$@" >&2
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
