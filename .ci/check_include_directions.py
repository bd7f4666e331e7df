#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dependencies point one way: which folder may include which, read from the #include lines.

Also: LibTorch stays in agents, their studies and zero_workloads, project headers are named from the root, and what is named exists.
"""
import re

from source_files import CPP, ROOT, read, report, tracked

LOW = ["src/base", "src/collective", "src/nccl_abi", "src/annotate"]
SRC = LOW + ["src/nccl_plugin", "src/transport", "src/cost_model", "src/fingerprint", "src/hostccl", "src/policy", "src/decision",
             "src/simulator"]

# The trainer's folders, from the bottom up: each may use those before it. What stands beside the folders uses them all.
TRAINER = ["estimate", "data", "memory", "device", "parallel", "models", "optimizer", "offload", "zero_r", "zero", "checkpoint"]
TRAINER_LOW = ["src/base", "src/nccl_abi", "src/annotate"]
TRAINER_ROWS = {f"zero_workloads/{folder}": TRAINER_LOW + [f"zero_workloads/{lower}" for lower in TRAINER[:number]]
                for number, folder in enumerate(TRAINER)}
# What the object that is loaded into jobs may use of the library.
PLUGIN = LOW + ["src/nccl_plugin", "src/transport", "src/cost_model", "src/fingerprint", "src/policy", "src/decision",
                "traces/record", "traces/format"]

# folder: what it may include beside itself. The longest matching folder counts. Standing alone means nothing else.
MAY_INCLUDE = {
    "src/base": [],
    "src/collective": ["src/base"],
    "src/annotate": [],
    "src/nccl_abi": [],
    "src/nccl_plugin": ["src/base", "src/nccl_abi"],
    "src/transport": LOW,
    "src/cost_model": LOW,
    "src/fingerprint": LOW,
    "src/policy": LOW + ["src/transport", "src/cost_model", "src/fingerprint"],
    "src/hostccl": LOW + ["src/nccl_plugin", "src/transport", "src/cost_model", "src/fingerprint"],
    "src/simulator": LOW + ["src/transport", "src/cost_model", "src/fingerprint"],
    "src/decision": LOW + ["src/transport", "src/cost_model", "src/fingerprint", "src/policy"],
    "src/decision/switching": [],
    "traces/format": ["src/base", "src/collective", "src/cost_model"],
    "traces": LOW + ["src/cost_model", "traces"],
    # A row for each folder, in their order: each may use those above it, so there is no cycle between them.
    "plugin/border": PLUGIN,
    "plugin/times": PLUGIN,
    "plugin/chain": PLUGIN + ["plugin/border"],
    "plugin/runtime": PLUGIN + ["plugin/border", "plugin/times", "plugin/chain"],
    "plugin/interpose": PLUGIN + ["plugin/border", "plugin/times", "plugin/runtime"],
    "plugin/profiler": PLUGIN + ["plugin/border", "plugin/times", "plugin/chain", "plugin/runtime"],
    "plugin/tuner": PLUGIN + ["plugin/border", "plugin/chain", "plugin/runtime"],
    "plugin": LOW,
    "agents": ["src/base", "src/collective", "src/cost_model", "src/fingerprint", "src/policy", "traces/format",
               "traces/generators"],
    "zero_workloads": TRAINER_LOW,
    "zero_workloads/torch_backend": TRAINER_LOW,
    **TRAINER_ROWS,
    "tools": SRC + ["traces", "zero_workloads/estimate"],
    # Runs releases of NCCL with what tests/real_nccl runs them with.
    "tools/canary": SRC + ["tools", "traces", "tests/real_nccl"],
    "tools/receipt": SRC + ["traces", "tools", "tests/real_nccl"],
    # Not the product, which may include neither.
    "studies": SRC + ["traces", "tools", "zero_workloads/estimate"],
    "studies/agents": SRC + ["traces", "agents", "tools"],
    "benchmarks": SRC + ["traces", "tools"],
    "tests": SRC + ["traces", "plugin", "agents", "zero_workloads", "tools", "studies", "benchmarks"],
}
# Copied to other machines as it is: its files name each other without a folder, and nothing else of the project.
STANDALONE = "benchmarks/gpu"
TORCH_FOLDERS = ("agents", "zero_workloads", "studies/agents", "tests/agents", "tests/studies/agents", "tests/zero_workloads")
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Headers that the build writes.
GENERATED = re.compile(r"(build_paths|fuzz_entries|version|.*\.pb)\.h$")


def inside(path, folder):
    return str(path).startswith(folder + "/")


def row_of(path):
    folders = [folder for folder in MAY_INCLUDE if inside(path, folder)]
    return max(folders, key=len) if folders else None


def violation_of(path, bracket, name):
    if TORCH.match(name) and not any(inside(path, folder) for folder in TORCH_FOLDERS):
        return "LibTorch is for agents, their studies and zero_workloads only"
    if bracket == "<":
        return None
    if inside(path, STANDALONE):
        return None if (ROOT / STANDALONE / name).is_file() else f"{STANDALONE} stands alone"
    if not (ROOT / name).is_file():
        return None if GENERATED.search(name) else "no such file from the root of the project"
    row = row_of(path)
    allowed = [row] + MAY_INCLUDE[row]
    return None if any(inside(name, folder) for folder in allowed) else f"{row} may not include it"


def main():
    violations, lines = [], 0
    files = [path for path in tracked(*CPP, ".def") if row_of(path)]
    for path in files:
        for number, line in enumerate(read(path).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            lines += 1
            problem = violation_of(path, *match.groups())
            if problem:
                violations.append(f"{path}:{number}: #include of {match[2]}: {problem}")
    report("include directions", f"{lines} includes in {len(files)} files", violations)


main()
