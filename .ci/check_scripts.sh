#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script parses, and shellcheck has nothing to say.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t scripts < <(git ls-files -co --exclude-standard '*.sh' .ci/run)
verdict=ok
for script in "${scripts[@]}"; do
  bash -n "$script" || verdict="violations above"
done
if command -v shellcheck >/dev/null; then
  shellcheck -x --format=gcc "${scripts[@]}" || verdict="violations above"
else
  verdict="shellcheck is not installed: tools/setup/install.sh"
fi
echo "scripts: ${#scripts[@]} scripts: $verdict"
[[ "$verdict" == ok ]]
