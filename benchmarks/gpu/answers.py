#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the experiments of first_hour.sh answered.

For each question and release it prints what was asked, what was done and seen, and what follows.

  answers.py results.jsonl        reads what first_hour.sh wrote; "open" where the cases do not settle a question
"""
import collections
import json
import re
import statistics
import sys

CHOICE = re.compile(r"Algo (\S+) proto (\S+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
QUESTIONS = {
    "a": ("Do 2 and 4 ranks work on one GPU, each with its own NCCL_HOSTID, over loopback sockets?",
          "a process a rank, AllReduce of 1 MiB, sums checked"),
    "b": ("How many ranks and CTAs does NCCL_MULTI_RANK_GPU_ENABLE carry?",
          "2 and 4 ranks as threads and as processes, NCCL_MAX_CTAS 1 to 8, sums checked"),
    "c": ("Does STATIC_PLUGIN find the tuner and the profiler of a preloaded object?",
          "the probe preloaded, both plugin variables STATIC_PLUGIN, its calls counted"),
    "d": ("What does cost -1 on a valid entry do?", "1 KiB AllReduce with the table untouched, then with -1 on Ring Simple"),
    "e": ("Do channels below and above NCCL's number take effect?", "Ring Simple forced with 0, 1, 2, 3 and 16 channels"),
    "f": ("What happens when two ranks disagree?", "each rank its own answer: protocol, channels, algorithm"),
    "g": ("Do kernel events come under graph replay?", "the profiler asks for them, 4 calls eagerly and 4 captured, 20 repeats"),
    "h": ("Does the choice of a call (algSelection) take effect?", "four selections of AllReduce, NCCL's own line read"),
    "forced": ("Are choices forced by DynamICCL's rules visible in NCCL's log and in the profiler?",
               "each algorithm, protocol and number of channels by DYNAMICCL_RULES, both read"),
    "cost": ("What do the profiler's kernel stamps cost?", "no plugin, mask 0, mask 66 in turns, medians of each turn"),
}


def choice_of(row):
    """Returns (algorithm, protocol, channels) of NCCL's line, or None."""
    match = CHOICE.search(row.get("chosen", ""))
    return (match[1].upper(), match[2].upper(), int(match[4]) - int(match[3]) + 1) if match else None


def spelled(choice):
    return "no line" if choice is None else f"{choice[0]} {choice[1]} {choice[2]} channels"


def outcomes(rows):
    return "; ".join(f"{row['case']}: {row['outcome']}" for row in rows)


def all_ok(rows):
    ran = [row for row in rows if row["outcome"] != "skipped"]
    if not ran:
        return "open: nothing ran"
    bad = [row["case"] for row in ran if row["outcome"] != "ok"]
    return "yes" if not bad else "not for " + ", ".join(bad)


def largest_shared(rows):
    held = [row["case"] for row in rows if row["outcome"] == "ok"]
    return "open: none held" if not held else "held: " + "; ".join(held)


def found_static(rows):
    counts = rows[0].get("plugin", {})
    if not counts:
        return "open: the plugin did not report"
    tuner, profiler = counts["tuner_calls"] > 0, counts["profiler_inits"] > 0
    return f"tuner: {'yes' if tuner else 'no'}, profiler: {'yes' if profiler else 'no'}"


def effect_of_minus_one(rows):
    left, marked = (next((choice_of(row) for row in rows if text in row["case"]), None) for text in ("untouched", "-1 on"))
    if left is None or marked is None:
        return "open: NCCL's line is missing"
    if marked[:2] == ("RING", "SIMPLE") and left[:2] != marked[:2]:
        return "it forces the entry"
    return "it leaves the choice" if left == marked else f"it changes the choice from {spelled(left)} to {spelled(marked)}"


def effect_of_channels(rows):
    taken = []
    for row in rows:
        asked, choice = re.search(r"(\d+) channels asked", row["case"]), choice_of(row)
        if asked and choice:
            taken.append((row["case"].split(" ")[0], int(asked[1]), choice[2]))
    if not taken:
        return "open: NCCL's line is missing"
    own = {size: got for size, asked, got in taken if asked == 0}
    below = [got == asked for size, asked, got in taken if 0 < asked < own.get(size, 0)]
    above = [got == asked for size, asked, got in taken if asked > own.get(size, asked)]
    word = lambda hits: "none asked" if not hits else "taken" if all(hits) else "not taken" if not any(hits) else "in part"
    return f"fewer than NCCL's: {word(below)}; more: {word(above)}"


def kernel_events(rows):
    counts = {("captured" if "--graph" in row["case"] else "eager"): row.get("plugin", {}).get("kernel_events") for row in rows}
    if counts.get("eager") is None or counts.get("captured") is None:
        return "open: a case did not report"
    # Outside a graph, the profiler sees every repeat. In a captured graph it should see at least one event per replay.
    return f"eager {counts['eager']}, captured {counts['captured']}: " + (
        "yes" if counts["captured"] * 2 > counts["eager"] > 0 else "no, or only at capture")


def selections(rows):
    verdicts = []
    for row in rows:
        if row["outcome"] == "skipped":
            continue
        asked, choice = row["case"].split(" ")[-1], choice_of(row)
        verdicts.append(f"{asked}: {'taken' if choice and asked == '_'.join(choice[:2]) else spelled(choice)}")
    return "; ".join(verdicts)


def forced(rows):
    right = seen = 0
    wrong = []
    for row in rows:
        if row["outcome"] == "skipped":
            continue
        algorithm, protocol, channels = row["case"].upper().split(" ")[:3]
        logged, profiled = choice_of(row), row.get("plugin", {}).get("profiled", "").upper().split(" ")[1:4]
        seen += 1
        same = logged and logged[:2] == (algorithm, protocol) and profiled[:2] == [algorithm, protocol]
        if same and logged[2] <= int(channels):
            right += 1
        else:
            wrong.append(f"{row['case']}: log {spelled(logged)}, profiler {' '.join(profiled) or 'nothing'}")
    return f"{right} of {seen} as asked" + ("; " + "; ".join(wrong) if wrong else "") if seen else "open: nothing ran"


def stamps(rows):
    times = collections.defaultdict(list)
    for row in rows:
        match = re.match(r"(\d+) B, profiler mask (\w+)", row["case"])
        if match and row["outcome"] == "ok":
            times[int(match[1]), match[2]].append(row["rank_0"]["median_us"])
    lines = []
    for size in sorted({size for size, _ in times}):
        base = times.get((size, "none"), [])
        stamped = times.get((size, "66"), [])
        if base and stamped:
            ratio = statistics.median(stamped) / statistics.median(base)
            noise = (max(base) - min(base)) / statistics.median(base)
            lines.append(f"{size} B: {100 * (ratio - 1):+.1f} % (noise of the runs without: {100 * noise:.1f} %)")
    return "; ".join(lines) or "open: no case with times"


ANSWERS = {"a": all_ok, "b": largest_shared, "c": found_static, "d": effect_of_minus_one, "e": effect_of_channels,
           "f": outcomes, "g": kernel_events, "h": selections, "forced": forced, "cost": stamps}


def report(rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["experiment"], row["nccl"]].append(row)
    for (experiment, release), cases in groups.items():
        question, done = QUESTIONS[experiment]
        ran = [row for row in cases if row["outcome"] != "skipped"]
        skipped = sorted({row["reason"] for row in cases if row["outcome"] == "skipped"})
        seen = collections.Counter(row["outcome"] for row in cases)
        yield f"({experiment}) {question}  NCCL {release}"
        yield f"    done:   {done}"
        yield "    seen:   " + ", ".join(f"{count} {outcome}" for outcome, count in seen.items())
        yield "    answer: " + (ANSWERS[experiment](cases) if ran else "open: skipped, " + "; ".join(skipped))


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    print("\n".join(report(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
