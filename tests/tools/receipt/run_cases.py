#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of cases.json, and compares what `dynamiccl receipt` states about each with what is expected.

A case runs NVIDIA's NCCL over the stand-in for CUDA, under the settings of the case. `dynamiccl receipt` then reads
NCCL's log and the job's environment.

    tests/tools/receipt/run_cases.py BUILD_FOLDER [--only WORDS] [--markdown]

The fields of a case:
  standing  The case is a seeded misconfiguration. It passes if the receipt of `setting` has this standing and contains
            the text of `says`.
  clean     Nothing is wrong in the case. It fails if any receipt says "not in effect", or if a named setting has
            another standing than the one given here.
  program   The program of the driver (tests/real_nccl/driver) that runs. The default is `collectives`.
  files     The files that a job wrote. Nothing is run.

Exit codes: 0 all cases passed, 1 a case failed, 2 wrong usage, 3 no case failed but a release was not fetched.
"""
import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DEBUG = {"NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,GRAPH,TUNING,NET,P2P", "CUDA_STANDIN_CONNECT": "1"}
NOT_FETCHED = 3


def assignments(environment):
    return [f"{name}={value}" for name, value in environment.items()]


@functools.cache
def own_shared_memory():
    """Returns the arguments that give a command its own /dev/shm. An NCCL that crashes leaves its segments behind in
    /dev/shm. The list is empty if the machine does not allow this."""
    for option in ("-m", "-rm"):
        words = ["unshare", option, "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    return []


def run_nccl(build, case, folder):
    """Runs the case and writes nccl.log, even if NCCL fails. Returns None if the release was not fetched."""
    command = [*own_shared_memory(), build / "tests/real_nccl_case", case["release"], case["machine"], case["world"]]
    if "program" in case:
        command.append(f"--program={case['program']}")
    command += assignments(DEBUG | {name: value for name, value in case["environment"].items() if name != "NCCL_DEBUG"})
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    if done.returncode == NOT_FETCHED:
        return None
    log = re.search(r"^log: (.*)$", done.stdout, re.M)
    if not log:
        sys.exit(f"error: {case['name']}: no log\n{done.stdout}{done.stderr}")
    log = pathlib.Path(log[1])
    (folder / "nccl.log").write_bytes(log.read_bytes())
    subprocess.run(["rm", "-rf", log.parent], check=True)
    return [folder / "nccl.log"]


def files_of(build, case, folder):
    if "files" in case:
        for name, text in case["files"].items():
            (folder / name).write_text(text)
        return [folder / name for name in case["files"]]
    files = run_nccl(build, case, folder)
    if files is not None:
        (folder / "job.env").write_text("".join(line + "\n" for line in assignments(case["environment"])) + "HOME=/root\n")
        files.append(folder / "job.env")
    return files


def receipts(build, case, files):
    command = [build / "bin/dynamiccl", "receipt", *files, "--json"]
    for asked in assignments(case["asked"]):
        command += ["--asked", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"error: {case['name']}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)["receipts"]


def words_of(receipt):
    return f"{receipt['effect']}; {receipt['reason']}" if receipt["effect"] else receipt["reason"]


def is_about(receipt, setting):
    """`setting` is NAME, or NAME=VALUE if several values were asked for."""
    return setting in (receipt["setting"], f"{receipt['setting']}={receipt['asked']}")


def faults_of(case, found):
    """Returns a sentence for each fault in the receipts of a case."""
    if "clean" in case:
        faults = [f"false: {one['setting']}={one['asked']} {words_of(one)}" for one in found if one["standing"] == "not in effect"]
        for setting, standing in case["clean"].items():
            seen = [one["standing"] for one in found if is_about(one, setting)]
            if seen != [standing]:
                faults.append(f"{setting} is {seen}, not {standing}")
        return faults
    mine = [one for one in found if is_about(one, case["setting"])]
    if [one["standing"] for one in mine] != [case["standing"]] or case["says"] not in words_of(mine[0]):
        return [f"{case['setting']}: {[(one['standing'], words_of(one)) for one in mine]}"]
    return []


def row(case, found):
    asked = " ".join(assignments(case.get("environment", {}) | case["asked"]))
    asked = asked or ("see its program" if "program" in case else "see its files")
    where = f"NCCL {case['release']}, {case['machine']}" if "release" in case else "files"
    if "clean" in case:
        return f"| {case['name']} | {where} | `{asked}` | {', '.join(f'{name} {standing}' for name, standing in case['clean'].items())} |"
    mine = next(one for one in found if is_about(one, case["setting"]))
    proof = mine["proof"]["text"][:90] if mine["proof"] else ""
    line = f"| {case['name']} | {where} | `{asked}` | {words_of(mine)} | {'`' + proof.replace('|', '/') + '`' if proof else ''} |"
    return line.replace("\r", "\\r")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name holds these words")
    parser.add_argument("--markdown", action="store_true", help="also print the tables of docs/results/receipts.md")
    options = parser.parse_args()
    tally = {"seeded": [0, 0], "clean": [0, 0]}
    rows = {"seeded": [], "clean": []}
    skipped = 0
    for case in json.loads((HERE / "cases.json").read_text()):
        if options.only not in case["name"]:
            continue
        kind = "clean" if "clean" in case else "seeded"
        with tempfile.TemporaryDirectory() as scratch:
            files = files_of(options.build, case, pathlib.Path(scratch))
            if files is None:
                skipped += 1
                continue
            found = receipts(options.build, case, files)
        faults = faults_of(case, found)
        tally[kind][0] += not faults
        tally[kind][1] += 1
        rows[kind].append(row(case, found) if not faults else f"| {case['name']} | FAULT |")
        for fault in faults:
            print(f"{case['name']}: {fault}")
    if options.markdown:
        print("\n".join(rows["seeded"] + ["", *rows["clean"]]))
    print(f"seeded misconfigurations: {tally['seeded'][0]} of {tally['seeded'][1]} right")
    print(f"clean cases: {tally['clean'][0]} of {tally['clean'][1]} without a false statement")
    if skipped:
        print(f"skipped: {skipped}, whose release is not in the cache; tools/setup/fetch_nccl.sh 2.21.5 2.22.3 2.24.3 2.28.9 2.32.3")
    if any(right != all_ for right, all_ in tally.values()):
        return 1
    return NOT_FETCHED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
