#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the code of one promise of the product at a time and checks that a named test notices it.

  tools/checks/mutations.py                  # all promises, in a worktree of HEAD under build/mutations
  tools/checks/mutations.py --check          # only checks that each line to break still occurs exactly once; CI runs this
  tools/checks/mutations.py --list           # shows what is broken, and which tests should notice it
  tools/checks/mutations.py --only revoke    # one promise
  tools/checks/mutations.py --build build/release   # in this tree and its build, which is faster; files are restored afterwards

Builds and runs the named tests twice for each promise: with the unchanged code all of them must pass, with the broken
code at least one must fail. Prints a row of the table in docs/results/mutations.md for each promise. Exit code 1: no
test noticed a break, or a test fails with the unchanged code; 2: nothing could be run.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAILED = re.compile(r"^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess aborted|ILLEGAL|Exception.*)\)", re.M)


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    promise: str
    file: str
    whole: str  # occurs once in the file
    broken: str
    target: str
    tests: str  # regular expression of ctest names


MUTATIONS = (
    Mutation("rank", "law 1: no decision reads the rank", "plugin/tuner/tuner_session.cc",
             "Recognise(*recognised, key);\n  return key;",
             "Recognise(*recognised, key);\n"
             "  key.role = static_cast<Role>(group->communicator->identity.member); return key;",
             "preload_over_hostccl_test", r"^PreloadOverHostccl\.(RulesAreObeyed|RecognisedRolesAreEqual)"),
    Mutation("clock", "law 1: no decision reads a clock", "plugin/tuner/tuner_session.cc",
             "Recognise(*recognised, key);\n  return key;",
             "Recognise(*recognised, key);\n"
             "  key.role = static_cast<Role>(IssuingThread::Current().clock.Now() / 1000 % kRoles); return key;",
             "preload_over_hostccl_test", r"^PreloadOverHostccl\.(RulesAreObeyed|RecognisedRolesAreEqual)"),
    Mutation("engine", "law 1: an engine's answers follow from its options and the keys alone", "src/decision/decision_engine.cc",
             "const TableKey entry{key.collective, SizeClassOf(key.bytes), key.role};",
             "const TableKey entry{key.collective, SizeClassOf(key.bytes), "
             "static_cast<Role>(reinterpret_cast<uintptr_t>(this) / 64 % kRoles)};",
             "decision_test", r"^DecisionEngine\."),
    Mutation("revoke", "what is slower than NCCL's choice is taken back", "src/decision/guard/guard.cc",
             "if (const auto why = WhyRevoke()) return proposed_ = Propose(true, *why);",
             "if (const auto why = WhyRevoke(); why && now_ns < 0) return proposed_ = Propose(true, *why);",
             "guard_test", r"^Guard\."),
    Mutation("mask", "only what NCCL offers on every rank is chosen", "src/decision/decision_engine.cc",
             "if (!config.leaves_nccl_alone() && allowed[ConfigIndex(config.algorithm, config.protocol)]) {",
             "if (!config.leaves_nccl_alone()) {",
             "decision_test", r"^DecisionEngine\."),
    Mutation("budget", "trials are paid for from a budget", "src/decision/guard/guard_experiment.cc",
             "lost_before_ns_ - experiment_.lost_ns();",
             "lost_before_ns_;",
             "guard_test", r"^Guard\."),
    Mutation("checksum", "a damaged policy file is refused", "src/policy/policy_file.cc",
             "if (std::memcmp(digest.data(), bytes.data() + at, digest.size()) != 0)",
             "if (digest.empty())",
             "policy_test", r"^PolicyFile\."),
    Mutation("trace-order", "a trace holds a thread's records in their order", "traces/record/recorder.cc",
             "TraceRecord* const slot = records + (position & mask);",
             "TraceRecord* const slot = records + ((position ^ 1) & mask);",
             "traces_record_test", r"^RecorderFile\."),
    Mutation("pin", "NCCL_ALGO and NCCL_PROTO of the user win", "plugin/tuner/tuner_v2.cc",
             "if (context == nullptr || pinned || function < 0",
             "if (context == nullptr || (pinned && context == nullptr) || function < 0",
             "plugin_doors_test", r"^TunerDoors\.Version2"),
    Mutation("policy-hash", "ranks with different policies use no table", "src/decision/attestation.cc",
             "if (a.*row.member != b.*row.member) {",
             "if (row.member != &AttestedValues::policy && a.*row.member != b.*row.member) {",
             "decision_test", r"^Attestation\."),
    Mutation("barrier", "no call from the boundary on goes on before the verdict", "src/decision/switching/call_gate.h",
             "if ((armed & kCommitted) == 0) return false;",
             "if ((armed & kCommitted) == 0) return true;",
             "call_gate_test", r"^CallGate\."),
    Mutation("ring-order", "hostccl's rings add up in the order that docs/algorithms.md states",
             "src/hostccl/algorithms/channel_work.h",
             "return ring[static_cast<size_t>((position + distance + n_ranks) % n_ranks)];",
             "return ring[static_cast<size_t>((position - distance + n_ranks) % n_ranks)];",
             "hostccl_collectives_test", r"^RingOrder\."),
    Mutation("error", "no error of ours reaches NCCL", "plugin/tuner/tuner_calls.h",
             "n_algorithms, n_protocols, registered, channels});\n  return ncclSuccess;",
             "n_algorithms, n_protocols, registered, channels});\n  return *channels > 0 ? ncclInternalError : ncclSuccess;",
             "preload_over_hostccl_test", r"^PreloadOverHostccl\.(RulesAreObeyed|PolicyIsObeyed)"),
)


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


class Scratch:
    """A source tree and its build, in which files are broken and restored."""

    def __init__(self, tree, build, jobs):
        self.tree = tree
        self.build = build
        self.jobs = jobs
        self.environment = dict(os.environ, CCACHE_BASEDIR=str(self.tree), CCACHE_NOHASHDIR="1")

    def make_from_head(self):
        if not self.tree.is_dir():
            self.must(["git", "-C", ROOT, "worktree", "add", "--detach", self.tree, "HEAD"])
        head = run(["git", "-C", ROOT, "rev-parse", "HEAD"]).stdout.strip()
        self.must(["git", "-C", self.tree, "checkout", "--quiet", "--force", "--detach", head])
        self.must(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DDYNAMICCL_BUILD_TORCH=OFF"])

    def must(self, command):
        done = run(command, env=self.environment)
        if done.returncode != 0:
            sys.stderr.write(done.stdout + done.stderr)
            sys.exit(2)

    def compile(self, target):
        done = run(["cmake", "--build", self.build, "--parallel", self.jobs, "--target", target], env=self.environment)
        if done.returncode != 0:
            sys.stderr.write(done.stdout[-4000:] + done.stderr)
            sys.exit(2)

    def failures(self, tests):
        """Returns the names of the tests that fail, and whether there were tests at all."""
        done = run(["ctest", "--test-dir", self.build, "-R", tests, "--no-tests=error", "--timeout", "300"])
        return FAILED.findall(done.stdout), "No tests were found" not in done.stdout + done.stderr

    def replace(self, file, old, new):
        path = self.tree / file
        text = path.read_text()
        if text.count(old) != 1:
            sys.stderr.write(f"{file} has '{old}' {text.count(old)} times: MUTATIONS needs its new text\n")
            sys.exit(2)
        path.write_text(text.replace(old, new))


def judge(scratch, mutation):
    """Returns the row of the table for a promise, and whether a test noticed that the promise was broken."""
    scratch.compile(mutation.target)
    whole, found = scratch.failures(mutation.tests)
    if whole or not found:
        return f"| {mutation.promise} | - | FAILS WITHOUT THE BREAK: {', '.join(whole) or 'no such test'} |", False
    scratch.replace(mutation.file, mutation.whole, mutation.broken)
    try:
        scratch.compile(mutation.target)
        failed, _ = scratch.failures(mutation.tests)
    finally:
        scratch.replace(mutation.file, mutation.broken, mutation.whole)
    caught = ", ".join(f"`{name}`" for name in failed) or "NONE"
    broken = " ".join(mutation.broken.split("\n")[-1].split()).replace("|", "\\|")
    return f"| {mutation.promise} | `{mutation.file}`: `{broken}` | {caught} |", bool(failed)


def check_places():
    """Runs --check and returns its exit code."""
    gone = [each for each in MUTATIONS if (ROOT / each.file).read_text().count(each.whole) != 1]
    for each in gone:
        sys.stderr.write(f"{each.file}: '{each.whole}' does not stand there once: MUTATIONS['{each.name}'] needs its new text\n")
    print(f"mutations: {len(MUTATIONS)} places, {len(gone)} gone")
    return 1 if gone else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="name of one, as --list has it")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/mutations", help="for the worktree and its build")
    parser.add_argument("--build", type=pathlib.Path, help="a build of this tree, in place of a worktree of HEAD")
    parser.add_argument("--jobs", default=os.cpu_count(), help="compilers at a time")
    given = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if given.only in (None, mutation.name)]
    if given.list or not chosen:
        print("\n".join(f"{each.name:12} {each.promise}: {each.target}, {each.tests}" for each in MUTATIONS))
        sys.exit(0 if given.list else 2)
    if given.check:
        sys.exit(check_places())
    folder = given.folder.resolve()
    if given.build:
        scratch = Scratch(ROOT, given.build.resolve(), given.jobs)
    else:
        scratch = Scratch(folder / "tree", folder / "tree/build/mutations", given.jobs)
        scratch.make_from_head()
    print("| promise | how it was broken | noticed by |\n|---|---|---|", flush=True)
    held = True
    for mutation in chosen:
        row, noticed = judge(scratch, mutation)
        print(row, flush=True)
        held = held and noticed
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
