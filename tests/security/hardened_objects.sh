#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the shipped objects are linked as distributions link. The dynamic linker's tables must be read-only after
# loading, and all symbols must be resolved at load. No stack or segment may be both writable and executable, and code
# must not be relocated.
#
#   hardened_objects.sh FILE ...
set -euo pipefail

command -v readelf >/dev/null || { printf 'skipped: readelf is not installed\n'; exit 77; }
failed=0
refuse() {
  printf '%s: %s\n' "$1" "$2"
  failed=1
}
for file in "$@"; do
  segments="$(readelf --program-headers --wide "$file")"
  dynamic="$(readelf --dynamic --wide "$file")"
  grep -q GNU_RELRO <<<"$segments" || refuse "$file" "tables can be written after load (-z relro)"
  grep -qE 'BIND_NOW|Flags:.* NOW|Flags: NOW' <<<"$dynamic" || refuse "$file" "functions are resolved when first called (-z now)"
  grep -qE '(LOAD|GNU_STACK).* RWE ' <<<"$segments" && refuse "$file" "a segment can be written and run"
  grep -q TEXTREL <<<"$dynamic" && refuse "$file" "code is changed at load (TEXTREL)"
  grep -q 'Elf file type is DYN' <<<"$segments" || refuse "$file" "is not position independent"
done
printf '%d files\n' "$#"
exit "$failed"
