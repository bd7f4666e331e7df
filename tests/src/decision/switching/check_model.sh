#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks switching.pml with spin. The protocol must hold, each wrong variant must fail as expected, the model must not
# be vacuous, and its messages must be those of the code. Prints one line per run. Exit code 77: spin is missing.
#
#   check_model.sh [--large]     --large: three ranks, and two attempts with a death (about a minute more)
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../../../.." && pwd)"
command -v spin >/dev/null || { echo "skipped: no spin (apt-get install spin)"; exit 77; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

# Prints "errors STATES VIOLATION" of a complete search. The depth limit of -m exceeds any run of this model.
search() {
  rm -f pan ./*.trail
  spin -a "$@" "$here/switching.pml" >/dev/null
  "${CC:-cc}" -O1 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c
  ./pan -m100000 >log
  ! grep -q 'max search depth too small\|Search not completed\|reached: out of memory' log || [[ -n "$(ls ./*.trail 2>/dev/null)" ]] ||
    { cat log; exit 1; }
  printf '%s %s %s\n' "$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' log)" \
    "$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' log)" "$(sed -n 's/^pan:1: \(assertion violated\|invalid end state\).*/\1/p' log)"
}

# expect "" | "assertion violated" | "invalid end state" OPTIONS... checks the result of a search.
expect() {
  local wanted="$1" errors states found
  shift
  read -r errors states found <<<"$(search "$@")"
  printf '%-46s %9s states  %s\n' "$*" "$states" "${found:-holds}"
  [[ "$found" == "$wanted" && (-n "$wanted" || "$errors" == 0) ]] || { echo "wanted: ${wanted:-holds}"; exit 1; }
}

kinds_of_code() { sed -n 's/^ *X(\([A-Z][a-z]*\)).*/\1/p' "$root/src/decision/switching/switch_message.h" | paste -sd ' '; }
kinds_of_model() { sed -n 's/^mtype:switch_kind = { \(.*\) };/\1/p' "$here/switching.pml" | tr -d ,; }
[[ -n "$(kinds_of_code)" && "$(kinds_of_code)" == "$(kinds_of_model)" ]] || {
  echo "messages of the code ($(kinds_of_code)) are not those of the model ($(kinds_of_model))"
  exit 1
}

small=(-DRANKS=2 -DCALLS=3 -DATTEMPTS=2)
expect "" "${small[@]}"
expect "" -DCRASH -DRANKS=2 -DCALLS=3 -DATTEMPTS=1
for wrong in 1 2 3 4 5 6; do expect "assertion violated" -DVARIANT=$wrong "${small[@]}"; done
expect "invalid end state" -DVARIANT=7 -DRANKS=2 -DCALLS=3 -DATTEMPTS=1
# The model must have a run that switches in the middle.
expect "assertion violated" -DSHOW_COMMIT -DRANKS=2 -DCALLS=3 -DATTEMPTS=1
if [[ "${1:-}" == --large ]]; then
  expect "" -DRANKS=3 -DCALLS=3 -DATTEMPTS=1
  expect "" -DCRASH -DRANKS=2 -DCALLS=3 -DATTEMPTS=2
fi
