#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers from a build on this machine what a bare machine with a GPU needs to run measure.sh and zero_on_cuda.sh:
# programs, objects, kernels, and the few shared libraries and headers of packages that it may lack. It does not gather
# NCCL, CUDA or PyTorch, which must already be there. (A PyTorch for CUDA contains all three and takes gigabytes.)
#   carry.sh BUILD FOLDER [NCCL ARCHITECTURE]   FOLDER then works as --home, FOLDER/include as --include. NCCL is the
#                                               folder of a release; its code for one architecture (90) is carried
# Exit codes: 0 done, 1 larger than 64 MiB, 2 usage, 3 something is missing.
set -euo pipefail

[[ $# -eq 2 || $# -eq 4 ]] || { sed -n '6,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="$1" target="$2" nccl="${3:-}" architecture="${4:-}"
[[ -x "$build/bin/dynamiccl" ]] || { echo "error: no bin/dynamiccl in '$build'" >&2; exit 3; }
mkdir -p "$target"/{bin,lib/hostccl,lib/carried,include,tests}

cp "$build/bin/dynamiccl" "$target/bin/"
for file in libdynamiccl.so libnccl-tuner-sweep.so dynamiccl_kernels.fatbin; do
  if [[ -e "$build/lib/$file" ]]; then cp "$build/lib/$file" "$target/lib/"; else echo "not in this build: lib/$file"; fi
done
ln -sf libdynamiccl.so "$target/lib/libnccl-tuner-dynamiccl.so"
ln -sf libdynamiccl.so "$target/lib/libnccl-profiler-dynamiccl.so"
cp "$build/lib/hostccl/libnccl.so.2" "$target/lib/hostccl/"
for program in gpu_test bench_test; do
  if [[ -x "$build/tests/$program" ]]; then cp "$build/tests/$program" "$target/tests/"; fi
done
for object in "$target"/bin/* "$target"/tests/* "$target"/lib/*.so "$target"/lib/hostccl/*; do
  if [[ -f "$object" && ! -L "$object" ]]; then strip --strip-debug "$object" || true; fi
done

# Copies shared libraries of packages. The C and C++ runtimes are those of the other machine, so a program that needs
# nothing else leaves nothing to copy.
for object in "$target"/bin/* "$target"/tests/*; do
  { ldd "$object" || true; } | awk '$3 ~ /^\// {print $3}'
done | sort -u | { grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz)[.-]' || true; } | while read -r library; do
  cp -L "$library" "$target/lib/carried/"
done

# Copies headers that the trainer's sources include (zero_workloads and src/base).
for header in fmt nlohmann CLI tl toml++ xxhash.h; do
  if [[ -e "/usr/include/$header" ]]; then cp -r "/usr/include/$header" "$target/include/"; else echo "not here: /usr/include/$header"; fi
done

# Copies a release of NCCL other than the installed one. With one architecture only, it is small enough.
if [[ -n "$nccl" ]]; then
  release="$(sed -nE 's/^#define NCCL_(MAJOR|MINOR|PATCH) +([0-9]+).*/\2/p' "$nccl/include/nccl.h" | head -3 | paste -sd.)"
  draft="$(mktemp -d)"
  trap 'rm -rf "$draft"' EXIT
  mkdir -p "$draft/nvidia/nccl/lib"
  cp -rL "$nccl/include" "$draft/nvidia/nccl/"
  "$here/one_architecture.py" "$nccl/lib/libnccl.so.2" "$draft/nvidia/nccl/lib/libnccl.so.2" "$architecture"
  tar -C "$draft" -c nvidia | xz -T0 -6 >"$target/nccl-$release.tar.xz"
fi

size=$(du -sk "$target" | cut -f1)
echo "$target: $((size / 1024)) MiB"
if [[ "$size" -gt 65536 ]]; then
  echo "error: more than 64 MiB" >&2
  exit 1
fi
