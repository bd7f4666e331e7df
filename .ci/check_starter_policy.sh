#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the shipped policy records of its making agrees with the page that states the command, and with the tree.
exec "$(dirname "${BASH_SOURCE[0]}")/../tools/checks/starter.py" --quick
