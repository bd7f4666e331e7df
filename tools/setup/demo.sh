#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on a fresh machine: installs what the programs need, builds them, fetches the text and runs `dynamiccl demo`.
# Arguments go to the demo: --quick, -o DIR, --data FILE.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
"$root/tools/setup/install.sh" programs
"$root/tools/setup/build.sh" programs
case " $* " in
  *" --data "*) ;;
  *) "$root/tools/setup/fetch_shakespeare.sh" ;;
esac
exec "$root/build/release/bin/dynamiccl" demo "$@"
