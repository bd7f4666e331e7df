# SPDX-License-Identifier: Apache-2.0
"""Runs the numpy reader that docs/formats/trace.md prints on a trace. Compares it with the same trace as JSON lines.

usage: numpy_reader_test.py DOCS_TRACE_MD TRACE.ctrace TRACE.jsonl     (exit code 77: numpy is missing)
"""
import json
import re
import sys

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)

document, binary, text = sys.argv[1:]
namespace = {}
exec(re.search(r"```python\n(.*?)```", open(document).read(), re.S).group(1), namespace)
records = namespace["read_records"](binary)
lines = [json.loads(line) for line in open(text)]
expected = [line for line in lines if "issued_ns" in line]
assert len(records) == len(expected) > 0, (len(records), len(expected))
for record, line in zip(records, expected):
    for field in ("issued_ns", "call_number", "bytes", "communicator", "duration_ns"):
        assert int(record[field]) == line.get(field, 0), (field, record, line)
print(len(records), "records agree")
