#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every place that tools/checks/mutations.py breaks is still in the code. Whether tests notice takes that command itself.
exec "$(dirname "${BASH_SOURCE[0]}")/../tools/checks/mutations.py" --check
