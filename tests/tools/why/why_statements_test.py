# SPDX-License-Identifier: Apache-2.0
"""Compares what `dynamiccl why` states with values that this file computes from the same files by itself.

Every line of the parts "The job" and "Where its time goes" must be a statement that is known here, and each number in it
must be that of the file. A statement without a check is an error. Files of DYNAMICCL_DATA are read where it is set.
DYNAMICCL_BIN is the program.
"""

import csv
import gzip
import io
import json
import os
import re
import statistics
import subprocess
import sys
import unittest
from collections import Counter, namedtuple

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
SAMPLES = os.path.join(ROOT, "traces/samples")
DATA = os.environ.get("DYNAMICCL_DATA", "")

# One call of the first rank. Times are microseconds; None is unknown. `comm` tells communicators apart.
Call = namedtuple("Call", "name bytes n_ranks begin us comm")

ELEMENT = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8, "Int": 4, "Double": 8, "Byte": 1, "ncclFloat32": 4,
           "ncclInt64": 8, "ncclInt8": 1, "ncclBfloat16": 2, "ncclFloat16": 2}
NCCL_TYPES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2]
NAMES = {"allreduce": "AllReduce", "allgather": "AllGather", "reducescatter": "ReduceScatter", "broadcast": "Broadcast",
         "reduce": "Reduce", "alltoall": "AlltoAll", "send": "Send", "recv": "Recv"}
PAIRS = {"Send", "Recv", "SendRecv", "AlltoAll", "Scatter", "Gather"}


class Facts:
    """What a file holds, as this test reads it."""

    def __init__(self, calls=(), ranks=0, here=1, library="", steps=(), device=None, framework=""):
        self.calls, self.ranks, self.here, self.library = list(calls), ranks, here, library
        self.steps, self.device, self.framework = list(steps), device, framework
        self.more_ranks = False  # True: the file mentions ranks, and not how many there are
        self.times = None  # of nccl-tests


def text_of(path):
    with open(path, "rb") as file:
        content = file.read()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8", "replace")


def collective(name):
    folded = re.sub(r"^(nccl2?|c10d):", "", name).replace("_", "").lower().split(" ")[0]
    folded = re.sub(r"(intotensor|base|tensor|coalesced|single)+$", "", folded)
    return NAMES.get(folded)


def length(intervals):
    """Length of the union of (begin, end)."""
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
    timed = len(kernels) == len(calls)  # each call has one kernel, in the order of issue
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
    calls, ranks, factor = [], 0, {"AllGather", "ReduceScatter", "AlltoAll"}
    for line in text_of(path).splitlines():
        record = json.loads(line)
        ranks = max(ranks, record.get("header", {}).get("n_ranks", 0))
        for kind in ("coll", "p2p"):
            if f"{kind}_perf" not in record:
                continue
            of = record[f"{kind}_perf"]
            size = of[f"{kind}_msg_size_bytes"] * (ranks if of[kind] in factor else 1)
            on_host = of.get(f"{kind}_timing_source") == "collective_cpu"
            calls.append(Call(of[kind], size, ranks, None, None if on_host else of[f"{kind}_exec_time_us"], 0))
    return Facts(calls, ranks)


def nccl_log(path):
    """The calls of the rank whose lines come first in the log of NCCL."""
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
    return Facts(of_rank[min(of_rank)], world, len(of_rank), library)


def nccl_profiler(path):
    """The array of NCCL's example plugin. A collective lasts from the first start of its channels to their last stop, on the
    GPU's clock if the events have it."""
    calls, channels, ranks, quoted = [], [], set(), re.compile(r'(:\s*)([A-Za-z]\w*)(?=[,}])')
    text = quoted.sub(r'\1"\2"', text_of(path)).rstrip().rstrip("],")  # the plugin may leave the array open
    for event in json.loads(text + "]"):
        arguments = event.get("args", {})
        if event["cat"] in ("COLL", "P2P") and event["ph"] == "b":
            ranks |= {arguments["Rank"], arguments.get("Peer", 0)}
            calls.append([event["name"], int(arguments["Count"]) * ELEMENT.get(arguments["Datatype"], 1)])
            channels.append(([], []))
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
    """What traces/samples/README.md says of the job."""
    return Facts([Call("AllReduce", 4000, 4, None, None, 0)] * 12, 4, 4, "NCCL 2.30.7")


def nccl_tests(path):
    """The times of nccl-tests, by place (out of place, in place), as rows of (bytes, us)."""
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


def shortened(size):
    """FormatBytes of the program: 4 KiB is "4K"."""
    unit = max(size.bit_length() - 1, 0) // 10
    text = f"{size / (1 << 10 * unit):.2f}".rstrip("0").rstrip(".")
    return text + ["", "K", "M", "G", "T", "P", "E"][unit]


class Statements:
    """Checks the lines of one answer. Each method named check_* returns the pattern and the function of one statement."""

    def __init__(self, test, facts):
        self.test, self.facts = test, facts

    def near(self, stated, computed, digits):
        self.test.assertAlmostEqual(float(stated), computed, delta=0.51 * 10**-digits)

    def step_calls(self):
        """Collectives of the most frequent step, and how many steps have exactly them."""
        collectives = [c for c in self.facts.calls if c.name not in PAIRS]
        steps = self.facts.steps
        if len(steps) > 1:
            of_step = [tuple((c.name, c.bytes) for c in collectives if low <= c.begin < high)
                       for low, high in zip(steps, steps[1:] + [float("inf")])]
            return Counter(of_step).most_common(1)[0]
        keys = [(c.name, c.bytes) for c in collectives]
        for period in range(2, len(keys) // 2 + 1):
            if keys[-period:] == keys[-2 * period : -period]:
                times = 1
                while keys[-(times + 1) * period : -times * period] == keys[-period:]:
                    times += 1
                return tuple(keys[-period:]), times
        return tuple(keys), 1

    def ranks(self, found):
        self.test.assertEqual(int(found["ranks"]), self.facts.ranks)
        self.test.assertEqual(bool(found["least"]), self.facts.more_ranks)
        if found["rest"]:
            here = re.search(r"of which (?:rank \d+|(\d+)) (?:is|are) here", found["rest"])
            self.test.assertEqual(int(here[1] or 1), self.facts.here)
        self.test.assertEqual((found["library"] or "").strip(), self.facts.library)

    def framework(self, found):
        self.test.assertEqual(found["name"], self.facts.framework)

    def no_step(self, found):
        counted = Counter(c.name for c in self.facts.calls)
        sizes = Counter()
        for call in self.facts.calls:
            sizes[call.name] += call.bytes or 0
        stated = dict((name, (int(n), size)) for n, name, size in re.findall(r"(\d+) (\w+) \(([^)]*)\)", found["calls"]))
        self.test.assertEqual(stated, {name: (n, shortened(sizes[name]) if sizes[name] else "unknown size")
                                       for name, n in counted.items()})

    def like_ddp(self, found):
        step, _ = self.step_calls()
        reduces = [size for name, size in step if name == "AllReduce" and size > 4096]
        self.test.assertEqual(int(found["n"]), len(reduces))
        self.test.assertEqual(found["size"], shortened(sum(reduces)))

    def step(self, found):
        step, times = self.step_calls()
        self.test.assertEqual(int(found["n"]), len(step))
        self.test.assertEqual(int(found["steps"]), times)
        self.test.assertEqual(found["how"] == "the program marked its steps", len(self.facts.steps) > 1)

    def step_time(self, found):
        """The median from the first call of a step to that of the next, of steps with the same calls."""
        starts = [min(c.begin for c in self.facts.calls if low <= c.begin < high)
                  for low, high in zip(self.facts.steps, self.facts.steps[1:] + [float("inf")])]
        times = [b - a for a, b in zip(starts, starts[1:])]
        self.near(found["ms"], statistics.median(times) / 1e3, 2)
        self.test.assertEqual(int(found["n"] or 1), len(times))

    def device(self, found):
        device = self.facts.device
        self.near(found["ms"], device["total"] / 1e3, 0)
        for name in ("computing", "exposed", "idle"):
            self.near(found[name], 100 * device[name] / device["total"], 1)

    def idle(self, found):
        device = self.facts.device
        self.test.assertGreater(device["idle"], max(device["computing"], device["exposed"]))
        self.near(found["share"], 100 * device["exposed"] / device["total"], 1)

    def hidden(self, found):
        device = self.facts.device
        self.near(found["share"], 100 * device["hidden"] / (device["hidden"] + device["exposed"]), 0)

    def busy(self, found):
        intervals = [(c.begin, c.begin + c.us) for c in self.facts.calls if c.us]
        span = max(high for _, high in intervals) - min(low for low, _ in intervals)
        self.near(found["share"], 100 * length(intervals) / span, 0)
        self.near(found["span"], span / (1e3 if found["unit"] == "ms" else 1), 0)

    def kind(self, found):
        self.test.assertEqual(bool(found["least"]), self.facts.more_ranks)
        timed = [c for c in self.facts.calls if c.us and c.name not in {"Send", "Recv", "SendRecv"}]
        size = found["size"]
        alike = [c for c in timed if (c.name, c.n_ranks) == (found["name"], int(found["ranks"]))
                 and (shortened(c.bytes) if c.bytes else "unknown size") == size]
        self.test.assertEqual(int(found["n"]), len(alike))
        self.near(found["us"], statistics.median(c.us for c in alike), 0)
        self.near(found["share"], 100 * sum(c.us for c in alike) / sum(c.us for c in timed), 0)
        if found["longest"]:
            self.near(found["longest"], max(c.us for c in alike), 0)
        if found["gbps"]:
            n = alike[0].n_ranks
            factor = {"AllReduce": 2 * (n - 1) / n, "Broadcast": 1, "Reduce": 1}.get(found["name"], (n - 1) / n)
            self.near(found["gbps"], alike[0].bytes * factor / statistics.median(c.us for c in alike) / 1e3, 1)

    def bandwidth(self, found):
        """The best bandwidth of one place, and the smallest size that reaches half of it."""
        n = int(found["ranks"])
        self.test.assertEqual((found["name"], n), (self.facts.times["name"], self.facts.ranks))
        factor = {"AllReduce": 2 * (n - 1) / n, "Broadcast": 1, "Reduce": 1}.get(found["name"], (n - 1) / n)
        expected = []
        for rows in self.facts.times["places"]:
            us_of = {}
            for size, us in rows:
                us_of.setdefault(size, []).append(us)
            speeds = sorted((size, size * factor / statistics.median(us) / 1e3) for size, us in us_of.items())
            best = max(speeds, key=lambda row: row[1])
            half = next(size for size, speed in speeds if speed >= best[1] / 2)
            expected.append((f"{best[1]:.1f}", shortened(best[0]), shortened(half)))
        self.test.assertIn((found["gbps"], found["at"], found["half"]), expected)

    def source(self, found):
        self.test.assertTrue(self.facts.times["places"][0])

    PATTERNS = [
        (r"Times of single collectives, no job: .* on .*\.", source),
        (r"(?P<name>\w+) among (?P<ranks>\d+) ranks on .*: up to (?P<gbps>[\d.]+) GB/s bus bandwidth \(at (?P<at>\S+)\); half "
         r"of it from (?P<half>\S+) on", bandwidth),
        (r"(?P<least>At least )?(?P<ranks>\d+) ranks?(?P<rest>, of which [^;]+)?(?:; (?P<library>.*))?\.", ranks),
        (r"Framework: (?P<name>[^(]+) \(.*\)\.", framework),
        (r"No step was seen to repeat: (?P<calls>.*) on the first rank\.", no_step),
        (r"Its calls do not tell which kind of training it is: (?P<calls>.*) on the first rank\.", no_step),
        (r"By its calls it is like data parallelism: (?P<n>\d+) AllReduces? of (?P<size>\S+?)(?: together)?\.", like_ddp),
        (r"A step is (?P<n>\d+) collectives?; (?P<steps>\d+) steps? with exactly these calls \((?P<how>.*?)\)\.", step),
        (r"A step takes (?P<ms>[\d.]+) ms \((?:median of (?P<n>\d+)|from one step to the next)\)\.", step_time),
        (r"The device's (?P<ms>\d+) ms: (?P<computing>[\d.]+) % computing, (?P<exposed>[\d.]+) % communicating with nothing "
         r"computed, (?P<idle>[\d.]+) % idle\.", device),
        (r"Mostly the device has nothing to do: it waits for the host, or for input\. Collectives that took no time would "
         r"save (?P<share>[\d.]+) %\.", idle),
        (r"(?P<share>\d+) % of the communication hides behind computation\.", hidden),
        (r"A collective runs in (?P<share>\d+) % of the (?P<span>\d+) (?P<unit>ms|us) between first and last\.", busy),
        (r"Of the time in collectives most went to these; a rank's wait for the others is in it:", None),
        (r"(?P<name>\w+) of (?P<size>unknown size|\S+) among (?P<least>at least )?(?P<ranks>\d+) ranks?: (?P<n>\d+) calls?, median (?P<us>\d+) us, "
         r"(?P<share>\d+) % of the time in collectives(?:, the longest (?P<longest>\d+) us)?"
         r"(?:, (?P<gbps>[\d.]+) GB/s (?:bus|algorithm) bandwidth)?", kind),
    ]

    def check(self, line):
        for pattern, function in self.PATTERNS:
            if found := re.fullmatch(pattern, line):
                if function:
                    function(self, found)
                return
        self.test.fail(f"no check for the statement: {line}")


def why(path):
    return subprocess.run([os.environ["DYNAMICCL_BIN"], "why", "--json", path], capture_output=True, text=True, check=False)


class WhyStatements(unittest.TestCase):
    def check(self, path, load):
        answer = why(path)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        facts = load(path)
        lines = [line for part in json.loads(answer.stdout)["parts"] if part["id"] in ("job", "time") for line in part["lines"]]
        self.assertTrue(lines)
        for line in lines:
            with self.subTest(file=path, line=line):
                Statements(self, facts).check(line)

    def test_samples(self):
        loaders = {"ddp_resnet_2_ranks.pt.trace.json": kineto, "ddp_resnet_device.pt.trace.json.gz": kineto,
                   "flight_recorder_rank_1.json": flight_recorder, "nccl_inspector.log": inspector,
                   "nccl_debug/2.28.9_communicators.log": nccl_log, "nccl_debug/2.32.3_communicators.log": nccl_log,
                   "nccl_debug/2.32.3_groups.log": nccl_log, "nccl_profiler.json": nccl_profiler,
                   "execution_trace.json": execution_trace, "standing_job.ctracez": standing_job}
        for name, load in loaders.items():
            self.check(os.path.join(SAMPLES, name), load)

    def test_other_files_are_refused(self):
        for name in ("README.md", "reduce_kineto.py", "wire_sequences/trace_pt_ddp_n2.txt"):
            answer = why(os.path.join(SAMPLES, name))
            self.assertEqual(answer.returncode, 2, name)
            self.assertIn(f"{name}: no known format", answer.stderr)

    def test_every_sample_is_in_a_test(self):
        with open(os.path.abspath(__file__), encoding="utf-8") as file:
            known = file.read()
        for folder, _, names in os.walk(SAMPLES):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), SAMPLES)
                self.assertTrue(path.startswith("wire_sequences/") or f'"{path}"' in known, path)

    @unittest.skipUnless(DATA, "set DYNAMICCL_DATA to the folder with recorded files")
    def test_recorded_data(self):
        files = {"hta-kineto/nccl_parser_config_nccl_data.json.gz": kineto,
                 "amd-mi355x/scale_8gpu_alltoall__command_output.log.gz": nccl_tests,
                 "amd-mi355x/scale_8gpu_all_reduce__command_output.log.gz": nccl_tests,
                 "superbench-a100/nccl_alltoall.log": nccl_tests, "superbench-a100/nccl_allreduce.log": nccl_tests,
                 "superbench-a100/nccl_broadcast.log": nccl_tests, "superbench-a100/nccl_reducescatter.log": nccl_tests}
        for name, load in files.items():
            self.check(os.path.join(DATA, name), load)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
