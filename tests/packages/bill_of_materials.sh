#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the bill of materials in the archive. It must be valid SPDX 2.3 and name everything that is linked. Every licence
# that it names must lie beside it. At run time the programs may need only the C library.
#   tests/packages/bill_of_materials.sh [folder of packages]
# shellcheck source=tests/packages/packages.bash
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
archive="$(one_package '*.tar.gz')"
tar -xzf "$archive" -C "$work" --strip-components=1
for file in "$work/bin/dynamiccl" "$work/lib/hostccl/libnccl.so.2" "$work"/lib/*.so; do
  others="$(objdump -p "$file" | sed -n 's/^ *NEEDED *//p' | grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-[a-z0-9-]*)\.so\.[0-9]+$' || true)"
  [[ -z "$others" ]] || fail "$(basename "$file") needs $others"
done
python3 -B "$root/tests/packages/check_bill.py" "$work/share/doc/dynamiccl" "$(cat "$root/VERSION")"
