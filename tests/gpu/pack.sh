#!/usr/bin/env bash
# Puts headers and libraries of what rondo stands on into tests/gpu/deps, for a machine without them
# and without a network. Runs on a Debian machine that has the packages of packages.txt.
#
#   tests/gpu/pack.sh
#
# LibTorch is not among them: that machine brings its own. Prints the size, which has to stay under 40 MB.
set -euo pipefail

deps=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/deps
packages=(libfmt-dev libspdlog-dev libtomlplusplus-dev libcli11-dev libeigen3-dev doctest-dev zlib1g-dev
  libzstd-dev libjpeg62-turbo-dev libpng-dev libcpp-httplib-dev libbrotli-dev libssl-dev)

# The packages and the libraries among what they depend on.
with_libraries() {
  local package
  for package in "${packages[@]}"; do
    echo "$package"
    dpkg-query --show --showformat='${Depends}\n' "$package" | tr ',|' '\n\n' |
      sed -E 's/^ +//; s/[ (:].*//' | grep -E '^lib(fmt|spdlog|tomlplusplus|zstd|jpeg|png|cpp-httplib|brotli|ssl)' || true
  done
  echo zlib1g
}

rm -rf "$deps"
mkdir -p "$deps"
with_libraries | sort -u | xargs dpkg --listfiles |
  grep -E '^/(usr/)?(include|lib|share/(eigen3/cmake|cmake|pkgconfig))/' | sort -u |
  while read -r file; do
    [[ -d $file || $file == */engines-3/* || $file == */ossl-modules/* ]] && continue
    [[ $file == *.a && $file != */libzstd.a ]] && continue # whose CMake package looks for it
    mkdir -p "$deps/usr/${file%/*}"
    cp -P "$file" "$deps/usr/$file"
  done
# Debian writes /usr/lib/… and /lib/… for one folder; here both are below usr/.
cp -a "$deps/usr/usr/." "$deps/usr/" && rm -rf "$deps/usr/usr"

size=$(du -sm "$deps" | cut -f 1)
echo "packed: $deps, $size MB"
((size <= 40)) || { echo "more than 40 MB" >&2; exit 1; }
