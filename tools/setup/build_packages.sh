#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages that users install, a DEB, an archive and a Python wheel, in build/package/packages. All libraries
# but the C library are linked statically. The objects that are loaded into jobs come from build/portable (glibc 2.17 and
# later) if tools/setup/build_portable.sh has built them there; else they are built here, for this machine's glibc.
# LibTorch is not needed, because the packages do not have the trainer and the agents. Safe to repeat.
#   tools/setup/build_packages.sh [folder]     default: build/package; the packages are in folder/packages
#   DYNAMICCL_JOBS                             how many compilers at once (default: the cores)
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder="${1:-$root/build/package}"
objects=(-DDYNAMICCL_PORTABLE_OBJECTS= -DDYNAMICCL_ZIGLANG=)
if [[ -f "$root/build/portable/lib/libdynamiccl.so" ]]; then
  zig="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/zig/bin/python3"
  ziglang="$("$zig" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')"
  objects=("-DDYNAMICCL_PORTABLE_OBJECTS=$root/build/portable/lib" "-DDYNAMICCL_ZIGLANG=$ziglang")
  printf '==> objects of jobs: those of build/portable\n'
else
  printf '==> objects of jobs: built here, for this glibc; tools/setup/build_portable.sh makes some for older ones\n'
fi

printf '==> building in %s\n' "$folder"
cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDYNAMICCL_SELF_CONTAINED=ON -DDYNAMICCL_BUILD_TORCH=OFF \
  -DDYNAMICCL_BUILD_TESTS=OFF "${objects[@]}" >/dev/null
cmake --build "$folder" --parallel "${DYNAMICCL_JOBS:-$(nproc)}"
rm -rf "$folder/packages"
(cd "$folder" && cpack >cpack.log 2>&1) || { cat "$folder/cpack.log" >&2; exit 3; }
rm -rf "$folder/packages/_CPack_Packages" "$folder/wheel"
cmake --install "$folder" --strip --prefix "$folder/wheel" >/dev/null
python3 -B "$root/packaging/make_wheel.py" "$folder/wheel" "$folder/packages"
printf '==> %s\n' "$folder"/packages/*
