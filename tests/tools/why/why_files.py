# SPDX-License-Identifier: Apache-2.0
"""Reads the files of why_statements_test.py in a few lines each, independently of the program's importers."""

import csv
import gzip
import json
import os
import re
from collections import Counter, namedtuple

# One call of the first rank. Times are in microseconds; None means unknown. `comm` identifies the communicator.
Call = namedtuple("Call", "name bytes n_ranks begin us comm")

ELEMENT = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8, "Int": 4, "Double": 8, "Byte": 1, "ncclFloat32": 4,
           "ncclInt64": 8, "ncclInt8": 1, "ncclBfloat16": 2, "ncclFloat16": 2}
NCCL_TYPES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2]
NAMES = {"allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter", "broadcast": "Broadcast",
         "reduce": "Reduce", "alltoall": "AlltoAll", "send": "Send", "recv": "Recv"}
PAIRS = {"Send", "Recv", "SendRecv", "AlltoAll", "Scatter", "Gather"}


class Facts:
    """The contents of a file as this test reads them."""

    def __init__(self, calls=(), ranks=0, here=1, library="", steps=(), device=None, framework=""):
        self.calls, self.ranks, self.here, self.library = list(calls), ranks, here, library
        self.steps, self.device, self.framework = list(steps), device, framework
        self.more_ranks = False  # True if the file mentions ranks but not their number.
        self.times = None  # The times that nccl-tests printed.
        self.dropped = 0  # The number of calls that the profiler dropped.
        self.hides_ranks = False  # True if the file does not state the number of ranks.
        self.all_calls = None  # The calls of all ranks, if they are not those of the first rank.
        self.used = Counter()  # For example "Ring LL x8": the first rank's calls with this choice of NCCL.
        # The calls for which NCCL chooses. By default these are all collectives of several ranks.
        self.choosable = None

    def chosen(self):
        """Returns how many calls NCCL chooses an algorithm for, and for how many the file lacks it."""
        calls = self.choosable
        if calls is None:
            calls = sum(1 for c in self.all_calls or self.calls if c.name not in PAIRS and c.n_ranks != 1)
        return calls, calls - sum(self.used.values())

    def missing(self):
        """Returns the kinds of the sentences about facts that the file lacks."""
        if self.times:
            return {"sweep"}
        kinds = {"pilot"} | ({"dropped"} if self.dropped else set())
        if any(c.name in PAIRS and not c.us for c in self.all_calls or self.calls):
            kinds.add("untimed")
        if not any(c.us for c in self.calls if c.name not in {"Send", "Recv", "SendRecv"}):
            kinds.add("how_long")
        if self.chosen()[1] > 0:
            kinds.add("algorithm")
        if self.here < self.ranks and not self.hides_ranks:
            kinds.add("waits")
        if not self.device:
            kinds.add("hides")
        return kinds


def spelled(algorithm, protocol, channels=0):
    """Returns a config in the program's spelling, such as "Ring LL128 x8"."""
    name = {"NVLSTREE": "NVLSTree", "NVLS": "NVLS", "PAT": "PAT"}.get(algorithm.upper(), algorithm.capitalize())
    protocol = protocol.capitalize() if protocol.upper() == "SIMPLE" else protocol.upper()
    return f"{name} {protocol}" + (f" x{channels}" if channels else "")


def text_of(path):
    with open(path, "rb") as file:
        content = file.read()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8", "replace")


def collective(name):
    folded = re.sub(r"^(nccl2?|c10d):", "", name).replace("_", "").lower().split(" ")[0]
    folded = re.sub(r"(intotensor|base|tensor|coalesced|single)+$", "", folded)
    return NAMES.get(folded)


def length(intervals):
    """Returns the length of the union of intervals (begin, end)."""
    covered, end = 0, float("-inf")
    for low, high in sorted(intervals):
        covered += max(0, high - max(low, end))
        end = max(end, high)
    return covered


def device_of(events):
    kernels = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    of_nccl = [(e["ts"], e["ts"] + e["dur"]) for e in kernels if e["name"].startswith("nccl")]
    others = [(e["ts"], e["ts"] + e["dur"]) for e in kernels if not e["name"].startswith("nccl")]
    if not others or not of_nccl:
        return None
    every = of_nccl + others
    whole = max(high for _, high in every) - min(low for low, _ in every)
    computing, busy = length(others), length(every)
    communicating = length(of_nccl)
    return {"total": whole, "computing": computing, "exposed": busy - computing, "idle": whole - busy,
            "hidden": communicating - (busy - computing)}


def kineto(path):
    document = json.loads(text_of(path))
    events = [e for e in document["traceEvents"] if "ts" in e and "dur" in e]
    info = document.get("distributedInfo", {})
    world = info.get("world_size", 0)
    calls = []
    for event in sorted((e for e in events if e["name"] == "record_param_comms"), key=lambda e: e["ts"]):
        arguments = event["args"]
        name = collective(str(arguments.get("Collective name", "")))
        if name:
            elements = max(arguments["In msg nelems"], arguments["Out msg nelems"]) if name == "AllGather" \
                else arguments["In msg nelems"]
            calls.append([name, elements * ELEMENT[arguments["dtype"]], arguments["Group size"], event["ts"]])
    kernels = sorted((e for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl")),
                     key=lambda e: e["ts"])
    timed = len(kernels) == len(calls)  # Each call has one kernel, in the order of issue.
    calls = [Call(*call, kernels[i]["dur"] if timed else None, 0) for i, call in enumerate(calls)]
    steps = [e["ts"] for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    version = info.get("nccl_version", "")
    ddp = any(e["name"] == "DistributedDataParallel.forward" for e in events)
    return Facts(calls, max([world] + [c.n_ranks for c in calls]), 1, f"NCCL {version}" if version else "", sorted(steps),
                 device_of(events), "PyTorch DDP" if ddp else "")


def elements(shape):
    product = 1
    for size in shape:
        product *= size
    return product


def flight_recorder(path):
    dump = json.loads(text_of(path))
    groups = {name: json.loads(str(group["ranks"]).replace("'", '"')) for name, group in dump["pg_config"].items()}
    calls = []
    for entry in dump["entries"]:
        name = collective(entry["profiling_name"])
        if not name or not entry["profiling_name"].startswith("nccl"):
            continue
        shapes = entry["output_sizes"] if name in ("AllGather", "Recv") else entry["input_sizes"]
        size = sum(elements(s) for s in shapes) * ELEMENT[entry["input_dtypes"][0]]
        duration = entry.get("duration_ms")
        calls.append(Call(name, size, len(groups.get(entry["process_group"][0], [0])), entry["time_created_ns"] / 1e3,
                          duration * 1e3 if duration else None, entry["process_group"][0]))
    return Facts(calls, max(len(ranks) for ranks in groups.values()), 1, f"NCCL {dump['comm_lib_version']}"
                 if dump.get("comm_lib_version") else "")


def inspector(path):
    calls, ranks, dropped, factor, used = [], 0, 0, {"AllGather", "ReduceScatter", "AlltoAll"}, Counter()
    for line in text_of(path).splitlines():
        record = json.loads(line)
        ranks = max(ranks, record.get("header", {}).get("n_ranks", 0))
        dropped = max(dropped, record.get("dump_stats", {}).get("coll_dropped_total", 0))
        for kind in ("coll", "p2p"):
            if f"{kind}_perf" not in record:
                continue
            of = record[f"{kind}_perf"]
            size = of[f"{kind}_msg_size_bytes"] * (ranks if of[kind] in factor else 1)
            if kind == "coll" and of.get("coll_algo", "unknown") != "unknown":
                used[spelled(of["coll_algo"], of["coll_proto"])] += 1
            on_host = of.get(f"{kind}_timing_source") == "collective_cpu"
            calls.append(Call(of[kind], size, ranks, None, None if on_host else of[f"{kind}_exec_time_us"], 0))
    facts = Facts(calls, ranks)
    facts.used, facts.dropped = used, dropped
    return facts


def nccl_log(path):
    """Reads the calls of the rank whose lines come first in a log of NCCL."""
    text = text_of(path)
    pattern = re.compile(r"(\S+) NCCL INFO (\w+): opCount [0-9a-f]+ sendbuff \S+ recvbuff \S+(?: acc \S+)? count (\d+) "
                         r"datatype (\d+) .*?comm (0x[0-9a-f]+) \[nranks=(\d+)\]")
    of_rank, communicators = {}, Counter()
    ranks = {}
    for found in re.finditer(r"comm (0x[0-9a-f]+) rank (\d+) n[rR]anks (\d+)", text):
        ranks[found[1]] = (int(found[2]), int(found[3]))
    world = max((size for _, size in ranks.values()), default=0)
    for line in text.splitlines():
        found = pattern.search(line)
        if not found:
            continue
        device = re.search(r"\[(\d+)\] NCCL INFO", line)[1]
        n_ranks = int(found[6])
        part = n_ranks if found[2] in ("AllGather", "ReduceScatter", "AlltoAll", "Scatter", "Gather") else 1
        size = int(found[3]) * NCCL_TYPES[int(found[4])] * part
        of_rank.setdefault(int(device), []).append(Call(found[2], size, n_ranks, None, None, found[5]))
        communicators[found[5]] += 1
    version = re.search(r"(NCCL|RCCL) version (\S+)", text)
    library = f"{version[1]} {version[2]}" if version else ""
    facts = Facts(of_rank[min(of_rank)], world, len(of_rank), library)
    facts.all_calls = [call for calls in of_rank.values() for call in calls]
    # Only rank 0 prints the choices. NCCL chooses for each collective of several ranks that moves bytes.
    for found in re.finditer(r"\[(\d+)\] NCCL INFO \w+: \d+ Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}="
                             r"\{(\d+)\.\.(\d+)\}", text):
        facts.used[spelled(found[2], found[3], int(found[5]) - int(found[4]) + 1)] += 1
    facts.choosable = sum(1 for c in facts.calls if c.name not in PAIRS and c.n_ranks > 1)
    return facts


def nccl_profiler(path):
    """Reads the array of NCCL's example plugin. A collective lasts from the first start of its channels to their last
    stop, on the GPU's clock if the events have it."""
    used = Counter()
    calls, channels, ranks, quoted = [], [], set(), re.compile(r'(:\s*)([A-Za-z]\w*)(?=[,}])')
    text = quoted.sub(r'\1"\2"', text_of(path)).rstrip().rstrip("],")  # The plugin may leave the array open.
    for event in json.loads(text + "]"):
        arguments = event.get("args", {})
        if event["cat"] in ("COLL", "P2P") and event["ph"] == "b":
            ranks |= {arguments["Rank"], arguments.get("Peer", 0)}
            calls.append([event["name"], int(arguments["Count"]) * ELEMENT.get(arguments["Datatype"], 1)])
            channels.append(([], []))
            if event["cat"] == "COLL":
                used[spelled(arguments["Algorithm"], arguments["Protocol"],
                             arguments.get("nChannels", arguments.get("nMaxChannels")))] += 1
        if event["cat"] == "GPU":
            clock, host = channels[-1]
            host.append(event["ts"])
            clock += [arguments[key] for key in ("StartGpuClk", "StopGpuClk") if arguments.get(key)]
    timed = []
    for call, (clock, host) in zip(calls, channels):
        us = (max(clock) - min(clock)) / 1e3 if clock else max(host) - min(host) if host else None
        timed.append(Call(*call, max(ranks) + 1, None, us, 0))
    facts = Facts(timed, max(ranks) + 1)
    facts.more_ranks = True
    facts.used = used
    return facts


def aicb(path):
    """Reads AICB's table. Each row is a call, and a step ends at a row "epoch_end". Groups may have no size."""
    lines = text_of(path).splitlines()
    world = re.match(r"\[rank0 ~ rank(\d+)\]", lines[0])
    begin = next(i for i, line in enumerate(lines) if line.startswith("comm_type"))
    calls, steps = [], []
    for row in csv.DictReader(lines[begin:]):
        kind = row["comm_type"].removeprefix("CommType.")
        if kind == "epoch_end":
            steps.append(len(calls))
        if (name := collective(kind)) and float(row["msg_size"]):  # Calls of 0 bytes are left out, with a note.
            size = row["comm_group_size"]
            us = row["_elapsed_time"]
            calls.append(Call(name, int(float(row["msg_size"])), 0 if size == "None" else int(size), len(calls),
                              None if us == "None" else float(us) * 1e3, row["comm_group"] + size))
    ranks = max([int(world[1]) + 1 if world else 0] + [c.n_ranks for c in calls])
    return Facts(calls, ranks, steps=steps if len(steps) > 1 else ())


def simai(path):
    """Reads SimAI's workload. A layer has collectives for its forward pass and for two gradients: input and weights."""
    lines = text_of(path).splitlines()
    numbers = {key: int(value) for key, value in re.findall(r"(\w+): (\d+)", lines[0])}
    calls = []
    for line in lines[2:]:
        fields = line.split()
        for kind, size in (fields[3:5], fields[6:8], fields[9:11]):
            if kind != "NONE" and int(size):  # Calls of 0 bytes are left out, with a note.
                name = NAMES[re.sub(r"(_DP|_EP|_TP)+$", "", kind).lower()]
                calls.append(Call(name, int(size), 0, None, None, kind))
    facts = Facts(calls, numbers.get("all_gpus", numbers.get("model_parallel_NPU_group", 1)))
    facts.hides_ranks = facts.ranks <= 1
    return facts


def execution_trace(path):
    calls, groups = [], {}
    for node in json.loads(text_of(path))["nodes"]:
        if node["name"].startswith("## process_group:init"):
            groups = {row["pg_name"]: row["group_size"] for row in json.loads(node["inputs"]["values"][0])}
        if node["name"] != "record_param_comms":
            continue
        attributes = {a["name"]: a["value"] for a in node.get("attrs", [])}
        name = collective(str(attributes.get("collective_name", "")) or
                          next((v for v in node["inputs"]["values"] if isinstance(v, str) and collective(v)), "wait"))
        if name:
            of = "out_msg_nelems" if name == "AllGather" else "in_msg_nelems"
            calls.append(Call(name, int(attributes[of]) * ELEMENT[attributes["dtype"]], 0, None, None, 0))
    return Facts(calls, max(groups.values()))


def standing_job(_):
    """Returns what traces/samples/README.md states about the job."""
    facts = Facts([Call("AllReduce", 4000, 4, None, None, 0)] * 12, 4, 4, "NCCL 2.30.7")
    facts.choosable = 0  # `why` asks only imported files for the algorithms.
    return facts


def nccl_tests(path):
    """Reads the times of nccl-tests, by place (out of place, in place), as rows of (bytes, us)."""
    text = text_of(path)
    rows = ([], [])
    number = r"\s+([\d.]+)"
    pattern = re.compile(r"^\s*(\d+)\s+\d+\s+\w+(?:\s+[a-z]+)?(?:\s+-?\d+)?" + number * 3 + r"\s+\S+" + number * 3, re.M)
    for found in pattern.finditer(text):
        if int(found[1]):
            rows[0].append((int(found[1]), float(found[2])))
            rows[1].append((int(found[1]), float(found[5])))
    program = re.search(r"(\w+?)_perf", text)
    name = collective((program[1] if program else os.path.basename(path).split("_")[1].split(".")[0]))
    ranks = len(set(re.findall(r"^#\s+Rank\s+(\d+)", text, re.M)))
    facts = Facts((), ranks)
    facts.times = {"name": name, "places": rows}
    return facts
