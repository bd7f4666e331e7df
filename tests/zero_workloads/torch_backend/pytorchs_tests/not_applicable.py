# SPDX-License-Identifier: Apache-2.0
"""Tests of distributed_test.py that do not apply to the backend, by the reason. A test that passes is taken off by run.py."""

NOT_APPLICABLE = {}
