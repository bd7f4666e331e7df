#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/reliability.md, which says what was done to this library on purpose, and what came of it.

    studies/reliability.py                            runs the parts that take minutes, then writes the page
    studies/reliability.py --run fuzz,soak            runs these, however long they take, then writes the page
    studies/reliability.py --run none                 writes the page from what was run before
    studies/reliability.py --list                     prints the parts and their commands

Each part is a command. Its findings are kept with date, commit and machine in docs/results/reliability/PART.json. So
parts that take hours need not run with the others, and the page shows each part with its own date, commit and machine.
If a part is not built or finds no tool, the program says so, and the part keeps its earlier findings.

The page ends with docs/results/reliability/by_hand.txt, which holds what was learned by hand. This program never writes
that file. Any program may be a part, if it writes a file of this form in that folder:
{"schema": 1, "title", "command", "date", "commit", "machine", "ok": bool, "columns": [...], "rows": [[...], ...]}
Exit codes: 0 all that was run is as promised, 1 something is not (the page says what).
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "reliability.md"
PARTS = ROOT / "docs" / "results" / "reliability"


class NotRun(Exception):
    """Says why a part cannot be run here."""


def run(command, **options):
    """Returns the finished process with its output. Raises NotRun if there is no such program."""
    if not pathlib.Path(command[0]).exists():
        raise NotRun(f"{command[0]} is not there: build it, or name the build folder with --build")
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, cwd=ROOT, **options)


def tests_of(program, pattern, **how):
    """Returns name, time in s, properties, and whether it passed or was skipped, for each test of a gtest program."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = run([str(program), f"--gtest_filter={pattern}", f"--gtest_output=json:{file.name}"], **how)
        report = json.loads(pathlib.Path(file.name).read_text() or '{"testsuites": []}')
    known = {"name", "file", "line", "status", "result", "timestamp", "time", "classname", "failures", "value_param"}
    tests = []
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            verdict = "failed" if "failures" in test else "skipped" if test["result"] == "SKIPPED" else "ok"
            tests.append({"name": f"{suite['name']}.{test['name']}", "verdict": verdict,
                          "said": {key: value for key, value in test.items() if key not in known}})
    if not tests:
        raise NotRun(f"{program} ran no test: {done.stderr[-300:]}")
    return tests, done.stdout


def test_part(program, pattern, **environment):
    """Returns a function that makes a row for each test of a program whose tests are named after what they check."""
    def rows(options):
        tests, _ = tests_of(options.build / "tests" / program, pattern, env=os.environ | environment)
        if all(test["verdict"] == "skipped" for test in tests):
            raise NotRun("all its tests were skipped: they need root, or a program that is not installed")
        return {"columns": ["test", "outcome"], "ok": all(test["verdict"] != "failed" for test in tests),
                "rows": [[f"`{test['name']}`", test["verdict"]] for test in tests]}
    return rows


def simulations(options):
    columns = ["what", "seen", "outcome"]
    pattern = "SwitchingSimulation.*:VotesSimulation.*:SwitchingExplored.*:VotesExplored.*"
    rows = []
    for program in ("switching_test", "votes_test"):
        tests, _ = tests_of(options.build / "tests" / program, pattern)
        for test in tests:
            said = test["said"].get("counts") or (f"{test['said']['states']} states" if "states" in test["said"] else "")
            rows.append([f"`{test['name']}`", said, test["verdict"]])
    return {"columns": columns, "rows": rows, "ok": all(row[-1] == "ok" for row in rows)}


def model(options):
    del options
    done = run([str(ROOT / "tests/src/decision/switching/check_model.sh")])
    if done.returncode == 77:
        raise NotRun(done.stdout.strip())
    rows = [[f"`{options_.strip()}`", states, "holds" if found == "holds" else f"{found}: found"]
            for options_, states, found in re.findall(r"^(-D.*?) +(\S+) states  (.*)$", done.stdout, re.MULTILINE)]
    return {"columns": ["spin, `switching.pml` with", "states", "outcome"], "rows": rows, "ok": done.returncode == 0}


def faults(options):
    tests, output = tests_of(options.build / "tests" / "failing_calls_test", "*")
    counts = dict(re.findall(r"RUN +\] (\S+)\n(?:.*\n)*?(\d+) faults injected", output))
    rows = [[test["name"].split("/")[-1].replace("_", " "), counts.get(test["name"], "?"), test["verdict"]]
            for test in tests]
    total = sum(int(count) for count in counts.values())
    return {"columns": ["call that fails, mode", "faults", "outcome: the job ended right"],
            "rows": rows + [["all", str(total), f"{sum(row[2] == 'ok' for row in rows)} of {len(rows)}"]],
            "ok": all(row[2] == "ok" for row in rows)}


def load(options):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = run([str(options.build / "tests" / "load_of_calls"), "--json", file.name])
        report = json.loads(pathlib.Path(file.name).read_text())
    recorded, times = report["recorded"], report["call_ns"]
    rows = [["ranks as threads, communicators", f"{report['ranks']}, {report['communicators']}"],
            ["calls a minute", f"{report['calls_a_minute']:,.0f}"],
            ["calls made, recorded, lost", f"{report['calls']:,}, {recorded['calls']:,}, {recorded['lost']:,}"],
            ["sizes that the policy decides: on all ranks, from their vote on",
             f"{recorded['sizes_decided_by_policy']} of 16"]]
    rows += [[f"a call's time in the {name.replace('_', ' ')}: median, 99 of 100",
              f"{times[name]['p50'] / 1000:.1f} us, {times[name]['p99'] / 1000:.1f} us"] for name in ("first_tenth", "last_tenth")]
    return {"columns": ["what", "figure"], "rows": rows + [["wrong", report["wrong"] or "nothing"]], "ok": done.returncode == 0}


def refused(options):
    done = run([str(options.build / "tests" / "refused_inputs")])
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {"columns": ["class", "cut at each byte: refused", "each byte changed: refused", "taken all the same"],
            "rows": rows, "ok": done.returncode == 0}


def fuzz(options):
    if options.fuzz_json:
        return fuzz_rows(json.loads(options.fuzz_json.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "fuzz.json")
        done = run([sys.executable, str(ROOT / "tools/fuzz/fuzz.py"), "--seconds", str(options.fuzz_seconds), "--json",
                    str(file)])
        if not file.exists():
            raise NotRun(done.stdout.strip() or done.stderr.strip())
        return fuzz_rows(json.loads(file.read_text()))


def fuzz_rows(report):
    rows = [[f"`{name}`", f"{fuzzer['executions']:,}", f"{fuzzer['edges']:,}", str(fuzzer["seconds"]),
             f"{fuzzer['date']}, {fuzzer['commit']}", ", ".join(fuzzer["found"]) or "nothing"] for name, fuzzer in report["fuzzers"].items()]
    total = sum(fuzzer["executions"] for fuzzer in report["fuzzers"].values())
    return {"columns": ["fuzzer", "executions", "edges", "s", "last run", "found"],
            "rows": rows + [["all", f"{total:,}", "", "", "", ""]],
            "ok": not any(fuzzer["found"] for fuzzer in report["fuzzers"].values())}


def soak(options):
    if options.soak_json:
        return soak_rows(json.loads(options.soak_json.read_text()))
    done = run([str(options.build / "tests" / "soak_a_job"), "--seconds", str(options.soak_seconds), "--kill-every", "60"])
    return soak_rows(json.loads(done.stdout))


def plain(value):
    if isinstance(value, dict):
        return ", ".join(f"{plain(each)} {name.replace('_', ' ')}" for name, each in value.items())
    return f"{value:,.0f}" if isinstance(value, float) else str(value)


def soak_rows(report):
    leader = max((process for process in report["processes"] if process["rank"] == 0), key=lambda process: process["seconds"])
    rows = [["calls, each checked on 4 ranks", f"{report['calls_checked_on_every_rank']:,}"],
            ["seconds", f"{report['seconds']:.0f}"],
            ["policies written, table versions of rank 0", f"{report['policies']}, {report['table_versions_of_rank_0']:.0f}"],
            ["kills, recovered", f"{report['kills']}, {report['recovered']}"],
            ["recovery, median and longest", f"{report['recovery_s']['median']:.2f} s, {report['recovery_s']['longest']:.2f} s"],
            ["left behind in /dev/shm", str(report["left_behind"])]]
    rows += [[f"rank 0: {key.replace('_', ' ')}", plain(value)] for key, value in leader.items() if key != "rank"]
    return {"columns": ["what", "figure"], "rows": rows + [["wrong", report["wrong"] or "nothing"]],
            "ok": not report["wrong"]}


def sanitizers(options):
    del options
    rows = []
    for name in ("asan", "tsan"):
        done = run([str(ROOT / "tools/setup/test_sanitized.sh"), name, "-j2"])
        passed = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", done.stdout)
        rows.append([name, passed.group(0) if passed else f"exit code {done.returncode}", "ok" if done.returncode == 0 else "failed"])
    return {"columns": ["sanitizers", "tests", "outcome"], "rows": rows, "ok": all(row[2] == "ok" for row in rows)}


# Each name has a title, the command as a reader types it, what makes the rows, and whether it takes minutes at most.
ALL_PARTS = {
    "refused": ("Bad inputs refused, by class", "build/release/tests/refused_inputs", refused, True),
    "security": ("As another user of the machine", "sudo build/release/tests/another_user_test",
                 test_part("another_user_test", "*"), True),
    "network": ("From another network of the machine", "sudo build/release/tests/another_network_test",
                test_part("another_network_test", "*"), True),
    "simulations": ("Simulated by seeds, and explored in all orders",
                    "ctest --test-dir build/release -R 'Simulation\\.|Explored\\.'", simulations, True),
    "model": ("Model of switching, checked by spin", "tests/src/decision/switching/check_model.sh", model, True),
    "faults": ("The n-th call of a function of the C library fails", "ctest --test-dir build/release -L faults", faults, False),
    "fail_points": ("A rank is killed or stopped at each named place of the object, on each of three ranks",
                    "ALL_FAULTS=1 build/release/tests/fail_points_test --gtest_filter=FailPoints.*:SiteStoreThatIsWritten.*",
                    test_part("fail_points_test", "FailPoints.*:SiteStoreThatIsWritten.*", ALL_FAULTS="1"), False),
    "odd_inputs": ("Pipes, devices, folders, full and read-only disks where files are named", "build/release/tests/odd_inputs_test",
                   test_part("odd_inputs_test", "*"), True),
    "memcheck": ("Jobs under valgrind", "build/release/tests/memcheck_test", test_part("memcheck_test", "*"), True),
    "load": ("A million calls a minute", "build/release/tests/load_of_calls", load, True),
    "lost_ranks": ("A rank is lost at every step of hostccl", "build/release/tests/faults_test", test_part("faults_test", "*"), False),
    "fuzz": ("Fuzzers", "tools/fuzz/fuzz.py --seconds 3600", fuzz, False),
    "soak": ("Soak: four ranks, random collectives, a policy each second, kills",
             "build/release/tests/soak_a_job --seconds 1800 --kill-every 60", soak, False),
    "sanitizers": ("Sanitizers", "tools/setup/test_sanitized.sh asan -j2; tools/setup/test_sanitized.sh tsan -j2", sanitizers,
                   False),
}


def commit():
    answer = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False)
    return answer.stdout.strip() or "unknown"


def machine():
    model_name = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores, {model_name.group(1) if model_name else platform.machine()}"


def keep(name, result):
    title, command, _, _ = ALL_PARTS[name]
    PARTS.mkdir(exist_ok=True)
    whole = {"schema": 1, "title": title, "command": command, "date": datetime.date.today().isoformat(),
             "commit": commit(), "machine": machine()} | result
    (PARTS / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")


def is_list_of_passed_tests(part):
    return part["columns"] == ["test", "outcome"] and part["ok"]


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def asked_and_seen(parts):
    """Returns a table with a row for each part. Parts that are no mere lists of passed tests have a section of their own."""
    rows = []
    for part in parts:
        seen, command = "as promised" if part["ok"] else "**not as promised**", "see below"
        if is_list_of_passed_tests(part):
            suites = dict.fromkeys(re.sub(r"^.*/(?=[A-Z])|\..*", "", row[0].strip("`")) for row in part["rows"])
            seen = f"{len(part['rows'])} tests passed: {', '.join(f'`{suite}`' for suite in suites)}"
            command = f"`{part['command']}`"
        rows.append([part["title"], seen, f"{part['date']}, {part['commit']}", command])
    return table(["what was done", "seen", "date, commit", "command"], rows)


def folded(part):
    """Returns the columns and rows for the page: of all fuzzers, those that found something and the sum."""
    columns, rows = part["columns"], part["rows"]
    if columns[0] == "fuzzer":
        last = [f"all {len(rows) - 1}", *rows[-1][1:-1], "nothing" if part["ok"] else ""]
        rows = [row for row in rows[:-1] if row[-1] != "nothing"] + [last]
    return columns, rows


def section(part):
    return f"## {part['title']}\n\n    {part['command']}\n\n{table(*folded(part))}"


def figure(parts, title, row, column=1):
    """Returns a cell of a part's table, or "(not run)" if there is no such row."""
    rows = {cells[0]: cells for part in parts if part["title"] == title for cells in part["rows"]}
    return rows[row][column] if row in rows else "(not run)"


def finding(parts, missing):
    """Returns the beginning of the page. The growth of memory comes from docs/results/faults.md."""
    promised = sum(part["ok"] for part in parts)
    faults_title, fuzz_title, soak_title = (ALL_PARTS[name][0] for name in ("faults", "fuzz", "soak"))
    kills, recovered = (figure(parts, soak_title, "kills, recovered") + ", ?").split(", ")[:2]
    nothing = " that found nothing" if all(part["ok"] for part in parts if part["title"] == fuzz_title) else ""
    not_run = f" Not run as a part: {', '.join(title.lower() for title in missing)}." if missing else ""
    faults, executions = figure(parts, faults_title, "all"), figure(parts, fuzz_title, "all")
    text = (f"The library kept what was promised in {promised} of {len(parts)} parts. Among them are {faults} injected failures "
            f"of library calls, {executions} executions of fuzzers{nothing}, and {recovered} recoveries from {kills} killed "
            f"ranks.{not_run} With a kill per minute the leader's memory grows by 280 KiB a minute, where 1,536 are allowed.")
    return "\n".join(textwrap.wrap(text, 120))


def write_page():
    names = list(ALL_PARTS) + sorted(path.stem for path in PARTS.glob("*.json") if path.stem not in ALL_PARTS)
    parts = [json.loads((PARTS / f"{name}.json").read_text()) for name in names if (PARTS / f"{name}.json").exists()]
    missing = [ALL_PARTS[name][0] for name in ALL_PARTS if not (PARTS / f"{name}.json").exists()]
    machines = ", ".join(dict.fromkeys(part["machine"] for part in parts))
    about = (f"`studies/reliability.py` writes this page, except for its end, which is kept in "
             f"`docs/results/reliability/by_hand.txt`. Each test and fuzzer has a row in `docs/results/reliability`. Machine: {machines}.")
    text = f"# Reliability: what was done to it, and what came of it\n\n{finding(parts, missing)}\n\n"
    text += "\n".join(textwrap.wrap(about, 120)) + f"\n\n## Asked and seen\n\n{asked_and_seen(parts)}\n"
    text += "\n".join(section(part) for part in parts if not is_list_of_passed_tests(part))
    if missing:
        text += "\n## Not run as a part\n\n" + "".join(f"* {title}: see the end of this page\n" for title in missing)
    PAGE.write_text(text + "\n" + (PARTS / "by_hand.txt").read_text())
    return all(part["ok"] for part in parts)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="folder of a built tree")
    parser.add_argument("--run", default=",".join(name for name, part in ALL_PARTS.items() if part[3]),
                        help="parts, separated by commas; all; none")
    parser.add_argument("--fuzz-seconds", type=int, default=3600)
    parser.add_argument("--soak-seconds", type=int, default=1800)
    parser.add_argument("--fuzz-json", type=pathlib.Path, help="what tools/fuzz/fuzz.py --json wrote, instead of a run")
    parser.add_argument("--soak-json", type=pathlib.Path, help="what soak_a_job --json wrote, instead of a run")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main():
    options = arguments()
    options.build = options.build.resolve()
    if options.list:
        for name, (title, command, _, short) in ALL_PARTS.items():
            print(f"{name:12} {title}{'' if short else ' (long)'}\n             {command}")
        return 0
    names = {"all": list(ALL_PARTS), "none": []}.get(options.run, options.run.split(","))
    unknown = [name for name in names if name not in ALL_PARTS]
    if unknown:
        print(f"error: no part is called {unknown[0]}\n  hint: --list names them", file=sys.stderr)
        return 2
    for name in names:
        try:
            keep(name, ALL_PARTS[name][2](options))
            print(f"{name}: run", flush=True)
        except NotRun as reason:
            print(f"{name}: skipped: {reason}", flush=True)
    ok = write_page()
    print(f"{PAGE.relative_to(ROOT)} is written{'' if ok else '; something is not as promised'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
