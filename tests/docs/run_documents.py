#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of pages as a new user would: all blocks of a page in order, in an empty folder.

  run_documents.py [--torch] PAGE...

Bash runs a block that begins with ```sh run, and stops at the first command that fails. A block that begins with
```sh run torch needs PyTorch and the backend, and is run only with --torch. If the word `verdict` follows, the block
may also end with exit code 1, by which a command reports what it found. For example, a page cannot promise which of
two settings is faster on a busy machine.

DYNAMICCL_BIN is the program. Pages use EXAMPLES for the folder of the example scripts. With --torch, TORCH_PYTHON names
the Python whose torchrun is used, and TORCH_BACKEND the folder for PYTHONPATH. With --print, the commands and their
output are printed, for a transcript.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK_SECONDS = 240
BLOCK = re.compile(r"^```sh run( torch)?( verdict)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page, torch):
    """Returns (line, commands, how they may end) for the page's blocks of this kind, in order."""
    text = page.read_text()
    return [(text.count("\n", 0, match.start()) + 2, match.group(3), ["exit code 0"] + (["exit code 1"] if match.group(2) else []))
            for match in BLOCK.finditer(text) if bool(match.group(1)) == torch]


def environment(home):
    """Returns the environment of a user. Of DynamICCL it has only the program, on PATH."""
    folders = [os.path.dirname(os.environ["DYNAMICCL_BIN"])]
    env = {"HOME": home, "LANG": "C.UTF-8", "NO_COLOR": "1",
           "EXAMPLES": str(ROOT / "zero_workloads/torch_backend/examples")}
    if os.environ.get("TORCH_PYTHON"):
        folders.append(os.path.dirname(os.environ["TORCH_PYTHON"]))
        env["PYTHONPATH"] = os.environ.get("TORCH_BACKEND", "")
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["PATH"] = ":".join(folders + ["/usr/local/bin", "/usr/bin", "/bin"])
    return env


def run_block(script, folder, env):
    """Returns (output, how it ended). A script that runs longer than BLOCK_SECONDS is killed with all its children."""
    job = subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, errors="replace", start_new_session=True)
    try:
        output = job.communicate(timeout=BLOCK_SECONDS)[0]
        return output, f"exit code {job.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return job.communicate()[0], f"not ended after {BLOCK_SECONDS} s"


def run_page(page, torch, show):
    """Returns whether all commands of the page succeeded."""
    blocks = blocks_of(page, torch)
    if not blocks:
        print(f"{page}: no block to run", file=sys.stderr)
        return False
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/home")
        os.mkdir(f"{folder}/work")
        for line, commands, ends in blocks:
            script = "set -euo pipefail\n" + ("PS4='$ '; set -x\n" if show else "") + commands
            output, ended = run_block(script, f"{folder}/work", environment(f"{folder}/home"))
            if show or ended not in ends:
                print(output)
            if ended not in ends:
                print(f"{page}:{line}: {ended}", file=sys.stderr)
                return False
    print(f"{page.name}: {len(blocks)} blocks ran")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="store_true", help="the blocks that need PyTorch, and no others")
    parser.add_argument("--print", action="store_true", dest="show", help="what the commands print")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    ran = [run_page(page, options.torch, options.show) for page in options.pages]
    sys.exit(0 if all(ran) else 1)


if __name__ == "__main__":
    main()
