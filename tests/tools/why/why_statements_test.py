# SPDX-License-Identifier: Apache-2.0
"""Compares the statements of `dynamiccl why` with values that this test computes independently from the same files.

This test must know every statement about the job, its time, the library's choices, changes to try and missing facts.
Each number in a statement must be that of the file. A statement without a check is an error. It is also an error if a
sentence about a missing fact is absent. If DYNAMICCL_DATA is set, its files are read too. DYNAMICCL_BIN is the program.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import unittest
from collections import Counter

from why_files import (PAIRS, aicb, execution_trace, flight_recorder, inspector, kineto, length, nccl_log, nccl_profiler,
                       nccl_tests, simai, standing_job)

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
SAMPLES = os.path.join(ROOT, "traces/samples")
DATA = os.environ.get("DYNAMICCL_DATA", "")


def shortened(size):
    """Formats bytes like FormatBytes of the program: 4 KiB is "4K"."""
    unit = max(size.bit_length() - 1, 0) // 10
    text = f"{size / (1 << 10 * unit):.2f}".rstrip("0").rstrip(".")
    return text + ["", "K", "M", "G", "T", "P", "E"][unit]


class Statements:
    """Checks the statements of one answer. PATTERNS names the method that checks each statement."""

    def __init__(self, test, facts):
        self.test, self.facts = test, facts

    def near(self, stated, computed, digits):
        self.test.assertAlmostEqual(float(stated), computed, delta=0.51 * 10**-digits)

    def step_calls(self):
        """Returns the collectives of the most frequent step, and how many steps have exactly these collectives."""
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

    def hidden_ranks(self, found):
        self.test.assertTrue(self.facts.hides_ranks)

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
        pairs = dict((name, int(n)) for n, name in re.findall(r"(\d+) (\w+)", found["pairs"] or ""))
        self.test.assertEqual(pairs, Counter(c.name for c in self.facts.calls if c.name in PAIRS))

    def step_time(self, found):
        """Checks the median time from the first call of a step to the first call of the next step."""
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
        self.test.assertEqual(bool(found["share"]), device["hidden"] + device["exposed"] > 0)
        self.near(found["share"] or 0, 100 * device["exposed"] / device["total"], 1)

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
        alike = [c for c in timed if (c.name, c.n_ranks) == (found["name"], int(found["ranks"] or 0))
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
        """Checks the best bandwidth of one place, and the smallest size that reaches half of it."""
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

    def used(self, found):
        """Checks the most frequent configs, in the order of their number of calls and then by name."""
        ordered = sorted(self.facts.used.items(), key=lambda item: (-item[1], item[0]))
        texts = [f"{config} for {n} call{'' if n == 1 else 's'} (by nccl)" for config, n in ordered]
        self.test.assertEqual(found["list"], ", ".join(texts[:3]) + (", and others" if len(texts) > 3 else ""))
        self.test.assertEqual(bool(found["first"]), self.facts.here > 1)

    def tunable(self, found):
        """Checks the only recorded sample. The recorder noted that all its calls are tunable; none was timed."""
        self.test.assertEqual((found["share"], self.facts.here), ("100.0", 4))

    def untimed(self, found):
        every = self.facts.all_calls or self.facts.calls
        untimed = [c for c in every if c.name in PAIRS and not c.us]
        stated = dict((name, int(n)) for n, name in re.findall(r"(\d+) (\w+)", found["calls"]))
        self.test.assertEqual(stated, Counter(c.name for c in untimed))
        self.near(found["share"], 100 * sum(c.bytes for c in untimed) / sum(c.bytes for c in every), 0)

    def dropped(self, found):
        self.test.assertEqual(int(found["calls"]), self.facts.dropped)

    def algorithm(self, found):
        calls, unknown = self.facts.chosen()
        self.test.assertEqual((int(found["unknown"]), int(found["calls"])), (unknown, calls))
        self.test.assertEqual(bool(found["none"]), bool(found["one"]) and unknown < calls)
        self.test.assertEqual(bool(found["one"]), self.facts.choosable is not None and bool(self.facts.used))

    def no_change(self, found):
        """Checks that steps repeat and that calls are timed, which this statement requires."""
        self.test.assertEqual(found["least"], "1")
        self.test.assertGreater(len(self.facts.steps), 1)
        self.test.assertTrue(any(c.us for c in self.facts.calls))

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
        (r"A step is (?P<n>\d+) collectives?; (?P<steps>\d+) steps? with exactly these calls \((?P<how>.*?)\)\."
         r"(?: Not counted in it: (?P<pairs>.*), which consist of sends and receives\.)?", step),
        (r"The file does not say how many ranks the job has\.", hidden_ranks),
        (r"A step takes (?P<ms>[\d.]+) ms \((?:median of (?P<n>\d+)|from one step to the next)\)\.", step_time),
        (r"The device's (?P<ms>\d+) ms: (?P<computing>[\d.]+) % computing, (?P<exposed>[\d.]+) % communicating while nothing "
         r"computes, (?P<idle>[\d.]+) % idle\.", device),
        (r"Mostly the device has nothing to do: it waits for the host, or for input\.(?: Collectives that took no time would "
         r"save (?P<share>[\d.]+) %\.)?", idle),
        (r"(?P<share>\d+) % of the communication hides behind computation\.", hidden),
        (r"A collective runs in (?P<share>\d+) % of the (?P<span>\d+) (?P<unit>ms|us) from the first collective to the last\.", busy),
        (r"Of the time in collectives most went to these; a rank's wait for the others is in it:", None),
        (r"(?P<name>\w+) of (?P<size>unknown size|\S+) among (?:(?P<least>at least )?(?P<ranks>\d+) ranks?|an unknown number of ranks): (?P<n>\d+) calls?, median (?P<us>\d+) us, "
         r"(?P<share>\d+) % of the time in collectives(?:, the longest (?P<longest>\d+) us)?"
         r"(?:, (?P<gbps>[\d.]+) GB/s (?:bus|algorithm) bandwidth)?", kind),
    ]

    RECORD = r"`(?:DYNAMICCL_TIMES=all )?dynamiccl record -o job\.ctrace -- LAUNCH`"
    # Patterns and checks of the sentences about missing facts, by kind.
    MISSING = {
        "untimed": (r"The times of (?P<calls>.*) \((?P<share>\d+) % of the bytes\), which no time above contains: a "
                    r"profiler trace of PyTorch\.", untimed),
        "dropped": (r"(?P<calls>\d+) calls? lost: dropped by the program that wrote the file, or cut off in the file\.", dropped),
        "how_long": (r"How long collectives take: a profiler trace of PyTorch, or " + RECORD + r"\.", None),
        "algorithm": (r"Which algorithm and protocol NCCL used for (?P<unknown>\d+) of (?P<calls>\d+) calls(?P<one> of a rank)?: "
                      r"(?:(?P<none>NCCL logged no choice for these)|a log with NCCL_DEBUG=INFO "
                      r"NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING of every rank)\.",
                      algorithm),
        "waits": (r"For whom ranks wait: the same files of the other ranks, given together\.", None),
        "hides": (r"How much communication hides behind computation: a profiler trace of one rank \(torch\.profiler, with "
                  r"CUDA activities\)\.", None),
        "pilot": (r"Whether another algorithm would make steps shorter: `dynamiccl pilot -- LAUNCH` tries them in the job\.",
                  None),
        "sweep": (r"What a training step gains: a sweep times calls alone\. `dynamiccl ab` and `dynamiccl pilot` compare steps\.",
                  None),
    }
    PATTERNS += [
        (r"Used(?P<first> on the first rank)?: (?P<list>.*)\.", used),
        (r"What a tuner can change: tunable (?P<share>[\d.]+) % of the bytes \(not all calls were timed\)\.", tunable),
        (r"Only the library's own choice was timed, so nothing says whether another one is faster\.", source),
        (r"No change that is known here is predicted to save (?P<least>\d+) % of a step\.", no_change),
    ] + list(MISSING.values())

    def kind_of_missing(self, line):
        return next((kind for kind, (pattern, _) in self.MISSING.items() if re.fullmatch(pattern, line)), None)

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
        parts = {part["id"]: part["lines"] for part in json.loads(answer.stdout)["parts"]}
        lines = [line for name in ("job", "time", "choices", "changes", "missing") for line in parts.get(name, [])]
        self.assertTrue(lines)
        for line in lines:
            with self.subTest(file=path, line=line):
                Statements(self, facts).check(line)
        with self.subTest(file=path):
            self.assertEqual({Statements(self, facts).kind_of_missing(line) for line in parts["missing"]}, facts.missing())
            self.assertEqual(any(line.startswith("Used") for line in parts.get("choices", [])), bool(facts.used))

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
        files |= {f"aicb/{name}.csv.gz": aicb for name in (
            "A100_example", "G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp", "L13B-D1-C04_Llama13B_zero3_mbs1",
            "L65B-D1-C07_Llama65B_zero2_mbs1", "L7B-D1-C01_Llama7B_zero2_mbs1", "L7B-D1-C02_Llama7B_zero3_mbs1")}
        files |= {name: simai for name in (
            "aicb/all_reduce.txt", "aicb/G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp_A100.txt",
            "aicb/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt", "aicb/L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt",
            "simai/microAllReduce.txt", "simai/workload_analytical.txt")}
        for name, load in files.items():
            self.check(os.path.join(DATA, name), load)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
