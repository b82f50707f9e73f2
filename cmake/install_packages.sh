# Sourced by run.sh and .ci/run: makes sure of system packages.

# The packages of a list file, comments left out.
packages_in() {
  grep -Ev '^[[:space:]]*(#|$)' "$1"
}

# Prints those of the given packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    if ! dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed; then
      echo "$package"
    fi
  done
}

# Installs what is missing, or says how to and fails. Prints to standard error only, and in run.sh as one
# of its stages.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    return 0 # not a Debian: CMake says what it does not find
  fi
  local missing as_root=()
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [[ -z $missing ]] && return 0
  if [[ $(id -u) -ne 0 ]]; then
    if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      echo "rondo needs packages that are not installed. As root, run:" >&2
      echo "apt-get update && apt-get install -y --no-install-recommends $missing" >&2
      return 1
    fi
  fi
  # shellcheck disable=SC2086  # a list of words
  if [[ $(type -t stage) == function ]]; then
    stage "Installing with apt: $missing" apt_install $missing
  else
    echo "Installing with apt: $missing" >&2
    apt_install $missing >&2
  fi
}

apt_install() {
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "$@"
}
