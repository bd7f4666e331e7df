#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script parses, and shellcheck has nothing to say where it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t scripts < <(git ls-files -co --exclude-standard '*.sh' .ci/run)
verdict=ok
for script in "${scripts[@]}"; do
  bash -n "$script" || verdict="violations above"
done
note=" (shellcheck is not installed)"
if command -v shellcheck >/dev/null; then
  note=""
  shellcheck -x --format=gcc "${scripts[@]}" || verdict="violations above"
fi
echo "scripts: ${#scripts[@]} scripts$note: $verdict"
[[ "$verdict" == ok ]]
