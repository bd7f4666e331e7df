#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The check compares what the shipped policy records of its making with the page of its command and with the tree.
exec "$(dirname "${BASH_SOURCE[0]}")/../tools/checks/starter.py" --quick
