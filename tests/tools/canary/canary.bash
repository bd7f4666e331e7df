# SPDX-License-Identifier: Apache-2.0
# Functions shared by the tests of `dynamiccl canary`. They skip visibly if a release is not in the cache. They need
# DYNAMICCL_BIN and DYNAMICCL_SOURCE, and canary.bats also needs BUILD, the build folder.

setup() {
  cd "$BATS_TEST_TMPDIR"
  # The cache of cells belongs to this test. The cache of releases is the user's.
  WHEELS="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/wheels"
  mkdir -p cache/dynamiccl
  ln -s "$WHEELS" cache/dynamiccl/wheels
  export XDG_CACHE_HOME="$BATS_TEST_TMPDIR/cache"
}

canary() { "$DYNAMICCL_BIN" canary "$@"; }

needs() { # RELEASE...
  for release in "$@"; do
    [ -e "$WHEELS/nccl-$release" ] || skip "no NCCL $release in the cache; run: tools/setup/fetch_nccl.sh $release"
  done
}

# answer OLD NEW MACHINE WORLD OPTION... prints the answer's text. It succeeds for any verdict.
answer() { canary "$1" "$2" --machine "$3" --world "$4" --connect first-call --no-remedies "${@:5}" || true; }
# mixed OLD NEW OPTION... runs the canary for several machines and keeps its exit code.
mixed() { canary "$@" --connect first-call --no-remedies; }
machine() { echo "$DYNAMICCL_SOURCE/tests/tools/canary/$1.machine"; }
topology() { echo "$DYNAMICCL_SOURCE/tests/tools/canary/$1.xml"; }
