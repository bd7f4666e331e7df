#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the demo on a fresh machine: installs what the programs need, builds them, fetches the training text and runs
# `dynamiccl demo`. The arguments are those of the demo: --quick, -o DIR, --data FILE.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
"$root/tools/setup/install.sh" programs
"$root/tools/setup/build.sh" programs
case " $* " in
  *" --data "*) ;;
  *) "$root/tools/setup/fetch_shakespeare.sh" ;;
esac
exec "$root/build/release/bin/dynamiccl" demo "$@"
