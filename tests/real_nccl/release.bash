# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The .bats files of this folder load this file.

# Ends a test after `standin_environment RELEASE ... 2>why || not_run $?`. Exit code 3 means that the release was not
# fetched, and the test is skipped. A release that was fetched and cannot be run is a failure.
not_run() { # EXIT_CODE
  cat why
  [ "$1" -eq 3 ] || return 1
  skip "$(cat why)"
}
