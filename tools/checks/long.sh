#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the checks that take too long for CI. Run them before a release, and after changes of the code that they check.
# The last results are in docs/results/long-checks.md. With --write the results of this run replace earlier ones of the
# same checks there.
#
#   tools/checks/long.sh [--write] [portable] [packages] [fuzz] [asan] [pytorch] [clang] [demo] [slow]     default: all eight
#
# portable   builds the objects for glibc 2.17 and for aarch64, and loads them with old C libraries
# packages   builds DEB, archive and wheel, installs each and uses it as another machine would
# fuzz       builds all fuzzers and then runs them, for half an hour of wall-clock time in total
# asan       all fast tests under AddressSanitizer and UBSan; CI runs only those of code that is loaded into jobs
# pytorch    PyTorch's own distributed tests over the torch backend and over gloo
# demo       the README's first command with --quick, using the present build
# clang      checks the units of build/release, which g++ compiled, for warnings of clang
# slow       the other tests labelled slow: models, crashes and policy swaps by the thousand; may take hours
#
# The checks need build/release with its tests (tools/setup/build.sh). Exit code 1: a check failed. A test that is
# skipped because a tool is missing is counted and named.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

readonly known=(portable packages fuzz asan pytorch clang demo slow)
write=0 checks=()
for word in "$@"; do
  if [[ "$word" == --write ]]; then
    write=1
  elif [[ " ${known[*]} " == *" $word "* ]]; then
    checks+=("$word")
  else
    printf 'error: %s is no check\n  hint: %s [--write] [CHECK ...]; the checks: %s\n' "$word" "$0" "${known[*]}" >&2
    exit 2
  fi
done
[[ ${#checks[@]} -gt 0 ]] || checks=("${known[@]}")
[[ -f build/release/CTestTestfile.cmake ]] || {
  printf 'error: there is no build with tests in build/release\n  hint: tools/setup/build.sh\n' >&2
  exit 3
}

logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT

tests() { ctest --test-dir build/release --output-on-failure --no-tests=error "$@"; }
run_check() {
  case "$1" in
    portable)
      tools/setup/build_portable.sh && DYNAMICCL_PORTABLE_MACHINE=aarch64 tools/setup/build_portable.sh &&
        tests -R 'other_machine|old_glibc|PortableObjects'
      ;;
    packages) tools/setup/build_packages.sh && tests -R packages_ ;;
    asan) tools/setup/test_sanitized.sh asan -j2 ;;
    pytorch) tests -R TorchBackend.PyTorchsOwnTests ;;
    fuzz) tools/fuzz/fuzz.py --seconds 1800 ;;
    clang) tools/checks/clang.py ;;
    demo) build/release/bin/dynamiccl demo --quick -o "$logs/demo.out" ;;
    slow) tests -L slow -E TorchBackend.PyTorchsOwnTests ;; # which is the check pytorch
  esac
}

rows=() verdict=0
for check in "${checks[@]}"; do
  printf '==> %s\n' "$check"
  began=$SECONDS
  run_check "$check" 2>&1 | tee "$logs/$check"
  code=${PIPESTATUS[0]} outcome=passed  # any command, an assignment too, sets PIPESTATUS
  [[ $code -eq 0 ]] || { outcome=FAILED verdict=1; }
  summary="$(grep -E 'tests passed|tests failed|executions|units, |done in ' "$logs/$check" | tail -n 1 | sed 's/|/ /g; s/; the report is .*//')"
  skipped="$(grep -cE '\*\*\*Skipped' "$logs/$check")"
  rows+=("| $check | $outcome | $(date -u +%F) | $(git rev-parse --short HEAD) | $(((SECONDS - began + 59) / 60)) | ${summary:-no summary}; $skipped skipped |")
done

readonly page=docs/results/long-checks.md
table() {
  local all=() missing=() row failed
  for check in "${known[@]}"; do
    row="$(printf '%s\n' "${rows[@]}" | grep "^| $check |" || grep -s "^| $check |" "$page")"
    if [[ -n "$row" ]]; then all+=("$row"); else missing+=("$check"); fi
  done
  failed="$(printf '%s\n' "${all[@]}" | grep -c '| FAILED |')"
  printf '# Long checks\n\nOf the %s checks that CI has no time for, %s have run and %s failed. Not run yet: %s.\n\n' \
    "${#known[@]}" "${#all[@]}" "$failed" "${missing[*]:-none}"
  printf 'Written by %s, %s cores.\n\n' "\`tools/checks/long.sh --write\`" "$(nproc)"
  printf '| check | outcome | day | commit | minutes | summary |\n|---|---|---|---|---|---|\n'
  printf '%s\n' "${all[@]}"
}
result="$(table)"
printf '%s\n' "$result"
[[ $write -eq 0 ]] || printf '%s\n' "$result" >"$page"
exit "$verdict"
