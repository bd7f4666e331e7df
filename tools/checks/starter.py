#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the starter policy anew by the commands that docs/starter_policy.md states, and compares it byte by byte with
policies/starter.dcpolicy.

    tools/checks/starter.py [--quick | --inputs] [--keep FILE]

With --quick nothing is trained: what the shipped file records of its making (options, hashes of its inputs, versions)
is compared with the page and the tree, in a second. With --inputs the jobs that the structure agent learns from are
drawn, and their checksum is compared with the one that the page states, in seconds. CI does the first, and a test the
second. Making the policy anew takes minutes. All but --quick need build/release with LibTorch. The exit code is 1 if
something differs.
"""
import argparse
import difflib
import glob
import hashlib
import json
import lzma
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLICY = ROOT / "policies" / "starter.dcpolicy"
PAGE = ROOT / "docs" / "starter_policy.md"
PROVENANCE = 21  # kind of the section (docs/formats/policy_file.md)
SHA256 = r"\b[0-9a-f]{64}\b"
TRAILER = 32  # bytes of the SHA-256 at the end


def sections(policy):
    """The bytes of each section of a policy file, by kind."""
    count, = struct.unpack_from("<I", policy, 52)
    found = {}
    for index in range(count):
        kind, *_, offset, size, _ = struct.unpack_from("<IIIIIIQQQ", policy, 128 + 48 * index)
        found[kind] = policy[offset:offset + size]
    return found


def documented():
    """The commands of the page that make the policy, as a script."""
    for block in re.findall(r"(?:^    .*\n)+", PAGE.read_text(encoding="utf-8"), re.M):
        if "-o starter.dcpolicy" in block:
            return re.sub(r"^    ", "", block, flags=re.M)
    sys.exit(f"error: {PAGE} has no block of commands with -o starter.dcpolicy\n  hint: the commands are indented by four blanks")


def default_of(option):
    """The default of a number of training steps."""
    header = (ROOT / "agents" / "train_command.h").read_text(encoding="utf-8")
    return re.search(rf"\bint {option} = (\d+);", header)[1]


def trainings(script):
    """The commands of the script that train, each on a line of its own."""
    return [line for line in script.replace("\\\n", " ").splitlines() if line.startswith("dynamiccl train ")]


def options(command):
    """The words after each option of a command."""
    given, last = {}, None
    for word in shlex.split(command)[2:]:
        if word.startswith("-"):
            last = given.setdefault(word, [])
        else:
            last.append(word)
    return given


def measurements(script, names):
    """(name, SHA-256) of the files that `names` stand for; those that the script unpacks are unpacked here."""
    unpacked = dict(reversed(pair) for pair in re.findall(r"xz -dk?c (\S+) > (\S+)", script))
    for name in names:
        if name in unpacked:
            yield name, hashlib.sha256(lzma.decompress((ROOT / unpacked[name]).read_bytes())).hexdigest()
        for path in glob.glob(name, root_dir=ROOT):
            yield pathlib.Path(path).name, hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


def stated(pattern):
    """The text that the page states once."""
    found = set(re.findall(pattern, PAGE.read_text(encoding="utf-8")))
    if len(found) != 1:
        sys.exit(f"error: {PAGE} states {len(found)} different things that look like {pattern}, and should state one")
    return found.pop()


def expected(script):
    """The lines of the provenance of the last training that follow from the page and the tree."""
    given = options(trainings(script)[-1])
    torch, = re.findall(r"^torch_version=(\S+)", (ROOT / "tools/setup/install.sh").read_text(encoding="utf-8"), re.M)
    steps = [] if "--from" in given else ["structure_iterations", "config_iterations"]
    return ["program: dynamiccl-agents train", f"libraries: LibTorch {torch}, XGBoost",
            "seed: " + given.get("--seed", ["1"])[0],
            *(f"{name}: " + given.get("--" + name.replace("_", "-"), [default_of(name)])[0] for name in steps),
            "hold_out_sizes: " + given.get("--hold-out-sizes", ["0"])[0],
            "hold_out_ranks: " + given.get("--hold-out-ranks", ["0"])[0],
            *(f"hold_out_topology: {name}" for name in given.get("--hold-out-topology", [])),
            *(f"policy: {stated(SHA256)} {name}" for name in given.get("--from", [])),
            *(f"measurements: {digest} {name}" for name, digest in sorted(measurements(script, given["--measurements"])))]


def recorded(policy):
    """The lines of the provenance, without what a training finds out and without the version of XGBoost (the system's)."""
    lines = sections(policy)[PROVENANCE].decode().splitlines()
    lines = [line for line in lines if not line.startswith(("learnt: ", "note: ", "earlier: "))]
    return [re.sub(r"^(libraries: .*XGBoost).*", r"\1", line) for line in lines]


def check_records(script):
    policy = POLICY.read_bytes()
    records, wanted = recorded(policy), expected(script)
    if not any(line.startswith("libraries: ") for line in records):  # a file that is older than this record
        wanted = [line for line in wanted if not line.startswith("libraries: ")]
    differences = list(difflib.unified_diff(records, wanted, "recorded in policies/starter.dcpolicy",
                                            "docs/starter_policy.md and the tree", lineterm="", n=0))
    if hashlib.sha256(policy[:-TRAILER]).digest() != policy[-TRAILER:]:
        differences.append("policies/starter.dcpolicy: its SHA-256 is wrong")
    print("\n".join(differences + ["starter policy: its records " + ("differ: tools/checks/starter.py --keep policies/starter.dcpolicy makes it anew"
                                                                    if differences else "agree with the page and the tree")]))
    return 1 if differences else 0


def run(script, result):
    """Runs the commands in a folder of their own and returns the bytes of the file that they write there."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs", "policies"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        path = f"{ROOT / 'build' / 'release' / 'bin'}:{os.environ['PATH']}"
        subprocess.run(["bash", "-euxc", script], cwd=folder, check=True, env=dict(os.environ, PATH=path))
        return (pathlib.Path(folder) / result).read_bytes()


def check_inputs(script):
    first = script.replace("\\\n", " ").partition("dynamiccl train ")
    command = first[0] + first[1] + first[2].splitlines()[0] + " --inputs-only --json inputs.json\n"
    now, then = json.loads(run(command, "inputs.json"))["learnt"]["calls"], stated("`calls ([0-9a-f]{16})`")
    print(f"starter policy: it learnt from calls {then}, and the tree gives " + ("the same" if now == then else f"calls {now}"))
    return 0 if now == then else 1


def check_bytes(script, keep):
    made, shipped = run(script, "starter.dcpolicy"), POLICY.read_bytes()
    if keep:
        keep.write_bytes(made)
    if made == shipped:
        print("starter policy: made anew, equal byte by byte")
        return 0
    ours, theirs = sections(shipped), sections(made)
    print("\n".join(difflib.unified_diff(ours[PROVENANCE].decode().splitlines(), theirs[PROVENANCE].decode().splitlines(),
                                         "policies/starter.dcpolicy", "made anew", lineterm="", n=0)))
    kinds = [str(kind) for kind in ours if ours[kind] != theirs.get(kind)]
    print(f"starter policy: made anew, it differs in sections {', '.join(kinds)} (docs/formats/policy_file.md)")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    quick = parser.add_mutually_exclusive_group()
    quick.add_argument("--quick", action="store_true", help="compare what the file records with the page and the tree; run nothing")
    quick.add_argument("--inputs", action="store_true", help="compare the checksums of what is learnt from; train nothing")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FILE", help="also write the policy that was made to this file")
    given = parser.parse_args()
    script = documented()
    if given.quick:
        sys.exit(check_records(script))
    sys.exit(check_inputs(script) if given.inputs else check_bytes(script, given.keep))


if __name__ == "__main__":
    main()
