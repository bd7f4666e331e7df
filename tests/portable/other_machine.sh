#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests what tools/setup/build_portable.sh built for another kind of machine, under qemu's emulation. Decisions must
# equal those of this machine bit for bit. A policy that is written here must be readable there, with its golden
# vectors. The C library of that machine must load the objects. Exit code 77: something needed is not available, so
# nothing was tested.
#   tests/portable/other_machine.sh SAME_ANSWERS [folder]     default: build/portable-aarch64
set -euo pipefail

here="$1"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder="$(realpath -m "${2:-$root/build/portable-aarch64}")"
cross=/usr/aarch64-linux-gnu # folder of Debian's libc6-arm64-cross

skip() {
  printf 'skipped: %s\n' "$1"
  exit 77
}
[[ "$(uname -m)" == x86_64 ]] || skip "this machine is no x86_64"
[[ -x "$folder/tests/same_answers" ]] || skip "run DYNAMICCL_PORTABLE_MACHINE=aarch64 tools/setup/build_portable.sh first"
command -v qemu-aarch64 >/dev/null || skip "there is no qemu-aarch64 (Debian: qemu-user)"
[[ -e "$cross/lib/ld-linux-aarch64.so.1" ]] || skip "there is no C library for aarch64 (Debian: libc6-arm64-cross)"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
there=(qemu-aarch64 -L "$cross")

"$here" write "$work/policy.dcpolicy"
"$here" "$work/policy.dcpolicy" >"$work/here"
"${there[@]}" "$folder/tests/same_answers" "$work/policy.dcpolicy" >"$work/there"
[[ "$(wc -l <"$work/here")" -eq 25 ]] || { echo "error: $(wc -l <"$work/here") lines, not 25" >&2; exit 1; }
diff "$work/here" "$work/there"
printf 'aarch64 computes all %s digests as x86_64 does\n' "$(wc -l <"$work/here")"
# Checks the comparison itself: the lines of another policy must differ.
"$here" >"$work/without"
! diff -q "$work/without" "$work/there" >/dev/null || { echo "error: unlike runs compare as equal" >&2; exit 1; }

# Like the objects of this machine (tests/plugin/exports_test.cc), these may need only the C library of glibc 2.17.
for object in libdynamiccl.so libdynamiccl-audit.so; do
  needs="$(objdump -T "$folder/lib/$object" | grep -o 'GLIBC_2[0-9.]*' | sort -Vu)"
  newest="$(tail -1 <<<"$needs")"
  [[ -n "$newest" ]] || { echo "error: $object needs no C library" >&2; exit 1; }
  [[ "$(printf 'GLIBC_2.17\n%s\n' "$newest" | sort -V | tail -1)" == GLIBC_2.17 ]] ||
    { echo "error: $object needs $newest, not GLIBC_2.17 at most" >&2; exit 1; }
  others="$(objdump -p "$folder/lib/$object" | sed -n 's/^ *NEEDED *//p' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-aarch64)\.so\.[0-9]+$' || true)"
  [[ -z "$others" ]] || { echo "error: $object needs $others" >&2; exit 1; }
  printf '%s needs %s at most\n' "$object" "$newest"
done

"$folder/tools/zig-cc" -o "$work/loads_object" "$root/tests/plugin/loads_object.c" -ldl
"${there[@]}" "$work/loads_object" "$folder/lib/libdynamiccl.so" ncclTunerPlugin_v6
"${there[@]}" "$work/loads_object" "$folder/lib/libdynamiccl-audit.so" la_symbind64
"${there[@]}" -E LD_PRELOAD="$folder/lib/libdynamiccl.so" "$work/loads_object" "$folder/lib/libdynamiccl.so" ncclAllReduce
