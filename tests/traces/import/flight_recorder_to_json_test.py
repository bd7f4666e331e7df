# SPDX-License-Identifier: Apache-2.0
"""Tests the converter of pickled flight recorder dumps. It must write the sample that the importer's test reads."""
import json
import pickle
import subprocess
import sys
import tempfile

converter, sample = sys.argv[1:]
with open(sample) as file:
    expected = json.load(file)


def run(pickled):
    with tempfile.NamedTemporaryFile() as file:
        file.write(pickled)
        file.flush()
        return subprocess.run([sys.executable, converter, file.name], capture_output=True, text=True)


# PyTorch pickles process groups as tuples, and adds frames.
dump = json.loads(json.dumps(expected))
for entry in dump["entries"]:
    entry["process_group"] = tuple(entry["process_group"])
    entry["frames"] = [{"name": "main", "filename": "train.py", "line": 7}]
for protocol in (2, pickle.HIGHEST_PROTOCOL):
    result = run(pickle.dumps(dump, protocol))
    assert result.returncode == 0, result.stderr
    converted = json.loads(result.stdout)
    for entry in converted["entries"]:
        assert entry.pop("frames") == [{"name": "main", "filename": "train.py", "line": 7}]
    assert converted == expected


class Command:
    def __reduce__(self):
        return (print, ("this ran",))


for bad in (pickle.dumps({"version": Command()}), pickle.dumps({"version": complex(1)}), b"", b"hello",
            pickle.dumps(dump)[:-100]):
    result = run(bad)
    assert result.returncode != 0 and "this ran" not in result.stdout, bad[:40]
    assert result.stderr.count("\n") == 1, result.stderr
assert "plain values only" in run(pickle.dumps({"version": Command()})).stderr
print("ok")
