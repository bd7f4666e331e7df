# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Loaded by the .bats files beside it.

# Of `standin_environment RELEASE ... 2>why || not_run $?`: a release that was not fetched (3) is skipped; one that was fetched and
# cannot be run is a failure.
not_run() { # EXIT_CODE
  cat why
  [ "$1" -eq 3 ] || return 1
  skip "$(cat why)"
}
