#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Python with the packages of requirements.txt: tools/docs/python.sh -m codespell_lib README.md
# The script installs the packages from PyPI into build/docs-venv at the first use and after each change of
# requirements.txt. Exit code 3: the packages could not be installed.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$here/../../build/docs-venv"

if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" || {
    printf 'error: the packages of tools/docs/requirements.txt could not be installed\n  hint: pip needs PyPI or a mirror of it\n' >&2
    exit 3
  }
  cp "$here/requirements.txt" "$venv/"
fi
exec "$venv/bin/python" -B "$@"
