#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles users' programs against the unpacked archive in a moved folder, by find_package and by pkg-config. Each
# program then runs as two ranks with checked sums, and its calls are recorded.
#   tests/packages/consumers.sh [folder of packages]
# shellcheck source=tests/packages/packages.bash
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
archive="$(one_package '*.tar.gz')"
consumer="$root/tests/packages/consumer"
mkdir "$work/first"
tar -xzf "$archive" -C "$work/first" --strip-components=1
mv "$work/first" "$work/moved" # no file may contain the old path
home="$work/moved"

cmake -S "$consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$home" >"$work/log" 2>&1 || { cat "$work/log"; fail "find_package"; }
cmake --build "$work/cmake" >"$work/log" 2>&1 || { cat "$work/log"; fail "what find_package found does not compile"; }
export PKG_CONFIG_PATH="$home/lib/pkgconfig"
[[ "$(pkg-config --variable=preload dynamiccl)" -ef "$home/lib/libdynamiccl.so" ]] || fail "pkg-config's preload is another file"
read -r -a flags <<<"$(pkg-config --cflags --libs dynamiccl dynamiccl-hostccl)"
"${CC:-cc}" -o "$work/by_pkg_config" "$consumer/sum_ranks.c" "${flags[@]}"

for program in "$work/cmake/sum_ranks" "$work/by_pkg_config"; do
  trace="$work/$(basename "$program").ctrace"
  UNIQUE_ID="$trace.id" "$home/bin/dynamiccl" record -o "$trace" -n 2 -- "$program" >"$work/log" 2>&1 || { cat "$work/log"; fail "$program"; }
  [[ "$(grep -c 'sum 3' "$work/log")" -eq 2 ]] || { cat "$work/log"; fail "two ranks print one sum each"; }
  "$home/bin/dynamiccl" trace show "$trace" >"$work/shown"
  grep -q AllReduce "$work/shown" || { cat "$work/shown"; fail "the call is not in the trace"; }
  printf '%s: two ranks, recorded\n' "$(basename "$program")"
done
