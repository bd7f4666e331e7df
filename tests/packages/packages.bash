# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of packages: the first argument is the folder of packages (default: build/package/packages). Sets root,
# packages and work, an empty folder that goes away at the end.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
packages="$(realpath -m "${1:-$root/build/package/packages}")"

skip() {
  printf 'skipped: %s\n' "$1"
  exit 77
}
fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}
one_package() { # pattern
  compgen -G "$packages/$1" >/dev/null || skip "no $1 in $packages: run tools/setup/build_packages.sh first"
  compgen -G "$packages/$1" | tail -1
}

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
