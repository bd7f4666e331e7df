# SPDX-License-Identifier: Apache-2.0
"""Writes the results of run.py as a page."""
import os
import platform
import subprocess
from datetime import date

import torch

_HEAD = """# PyTorch's own distributed tests over the backend `dynamiccl`

{passed} of {total} tests of PyTorch's `distributed_test.py` pass over `dynamiccl`, {skipped} are skipped. {failed} fail here and
pass over gloo, the control, which passes {gloo_passed}; {not_applicable} do not apply, and {both} fail over both.

![How PyTorch's own tests end over dynamiccl, and over gloo, the control](pictures/torch-distributed-tests.svg)

{date}, {cores} cores ({machine}), PyTorch {torch}, {ranks} ranks, commit {commit}:

```
tools/setup/install.sh             # installs NumPy and expecttest into .venv, which these tests need
PYTHONPATH=build/release/lib/python .venv/bin/python tests/zero_workloads/torch_backend/pytorchs_tests/run.py \\
  --results results.json --page docs/results/torch-distributed-tests.md
```

The tests are those for gloo. A test that PyTorch skips for gloo is the one for NCCL or MPI (`shim.py`). GPU tests get CPU tensors.

| | dynamiccl | gloo |
|---|---|---|
| passed | {passed} | {gloo_passed} |
| failed | {failed} | {gloo_failed} |
| do not apply, as listed below | {not_applicable} | |
| fail over both | {both} | |
| skipped by PyTorch | {skipped} | {gloo_skipped} |
| of those that fail over gloo, pass here | {better} | |
"""


def _machine():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=os.path.dirname(__file__))
    return done.stdout.strip() or "unknown"


def _count(results, outcome):
    return sum(result["outcome"] == outcome for result in results.values())


def _head(options, results, kinds):
    ours, gloos = results["dynamiccl"], results["gloo"]
    better = [name for name in kinds["passed"] if gloos[name]["outcome"] == "failed"]
    return _HEAD.format(
        date=date.today().isoformat(), cores=os.cpu_count(), machine=_machine(), torch=torch.__version__,
        ranks=options.ranks, commit=_commit(), total=len(ours), passed=len(kinds["passed"]), failed=len(kinds["FAILED"]),
        not_applicable=len(kinds["not applicable"]), both=len(kinds["fails over gloo too"]), skipped=len(kinds["skipped"]),
        better=len(better), gloo_passed=_count(gloos, "passed"), gloo_failed=_count(gloos, "failed"),
        gloo_skipped=_count(gloos, "skipped"))


def _names(names):
    return ", ".join(f"`{name}`" for name in sorted(names))


def _not_applicable(kinds, listed):
    yield "\n## What does not apply, and why\n\n| reason | tests |\n|---|---|\n"
    for reason, names in listed.items():
        here = set(names) & set(kinds["not applicable"])
        if here:
            yield f"| {reason} | {_names(here)} |\n"


def _by_words(title, names, results):
    """Returns a table of tests by the last line of their error or of the reason for skipping."""
    by_words = {}
    for name in names:
        by_words.setdefault(results[name]["detail"].replace("|", "/"), []).append(name)
    yield f"\n## {title}\n\n| words | tests |\n|---|---|\n"
    for words, those in sorted(by_words.items()):
        yield f"| {words} | {_names(those)} |\n"


def write(options, results, kinds, listed):
    with open(options.page, "w") as file:
        file.write(_head(options, results, kinds))
        file.writelines(_not_applicable(kinds, listed))
        if kinds["FAILED"]:
            file.writelines(_by_words("Failed", kinds["FAILED"], results["dynamiccl"]))
        file.writelines(_by_words("Fail over gloo as well", kinds["fails over gloo too"], results["gloo"]))
        file.writelines(_by_words("Skipped by PyTorch", kinds["skipped"], results["dynamiccl"]))
