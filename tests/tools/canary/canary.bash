# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of `dynamiccl canary`. A release that is not in the cache is skipped visibly. Needs DYNAMICCL_BIN and
# DYNAMICCL_SOURCE, and canary.bats BUILD, the build folder.

setup() {
  cd "$BATS_TEST_TMPDIR"
  # The cache of cells is this test's own; that of releases is the user's.
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

# answer OLD NEW MACHINE WORLD OPTION...: the text, whatever the verdict
answer() { canary "$1" "$2" --machine "$3" --world "$4" --connect first-call --no-remedies "${@:5}" || true; }
# mixed OLD NEW OPTION...: as answer, for several machines; with the canary's exit code
mixed() { canary "$@" --connect first-call --no-remedies; }
machine() { echo "$DYNAMICCL_SOURCE/tests/tools/canary/$1.machine"; }
topology() { echo "$DYNAMICCL_SOURCE/tests/tools/canary/$1.xml"; }
