#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains the small policy that several tests use, once for all of them. The folder TRAINED receives c.measurements,
# p.dcpolicy, and the standard output (said.json) and standard error (talk.txt) of `train --json -`. Needs DYNAMICCL_BIN
# and WRITE_SYNTHETIC_SWEEP.
set -euo pipefail

mkdir -p "$TRAINED"
cd "$TRAINED"
"$WRITE_SYNTHETIC_SWEEP" c.measurements
"$DYNAMICCL_BIN" train c.measurements --structure-iterations 2 --config-iterations 20 -o p.dcpolicy --json - > said.json 2> talk.txt
