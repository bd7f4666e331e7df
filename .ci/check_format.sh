#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C++ file is as clang-format leaves it (.clang-format). With --fix, makes it so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(git ls-files -co --exclude-standard '*.cc' '*.h' '*.c' '*.cu')
if [[ "${1:-}" == --fix ]]; then
  printf '%s\n' "${files[@]}" | xargs -n 40 clang-format -i
  exit
fi
verdict=ok
printf '%s\n' "${files[@]}" | xargs -n 40 clang-format --dry-run -Werror --ferror-limit=1 || verdict="violations above"
echo "format: ${#files[@]} files: $verdict"
[[ "$verdict" == ok ]] || echo "  hint: .ci/check_format.sh --fix"
[[ "$verdict" == ok ]]
