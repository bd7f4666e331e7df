#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tools/receipt/nccl_variables.def, the table of which NCCL release has which variable, from the fetched
libraries.

    tools/setup/fetch_nccl.sh 2.18.1 ... && tools/receipt/list_nccl_variables.py > tools/receipt/nccl_variables.def

A name is a variable of NCCL if the library of some release contains it as a separate text. A release has the variable
if its library contains the name anywhere. This may wrongly say that a release has a variable, in which case a receipt
claims less.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "dynamiccl/wheels"
# Texts in NCCL's libraries that look like variables but name constants and macros.
NO_VARIABLES = re.compile(r"_INITIALIZER$|^NCCL_GIN_CONNECTION_(FULL|RAIL)$|^NCCL_MNNVL$")
HEAD = """// SPDX-License-Identifier: Apache-2.0
// Every environment variable of NCCL {oldest} to {newest}: DYNAMICCL_NCCL_VARIABLE(name, since, until). `since` is the first release that
// has it and `until` the last; "" stands for the oldest and the newest release that was read. Written by list_nccl_variables.py.
DYNAMICCL_NCCL_TABLE_REACHES("{oldest}", "{newest}")
"""


def read_only_data(library):
    with tempfile.NamedTemporaryFile() as section:
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.rodata", library, section.name], check=True)
        return pathlib.Path(section.name).read_bytes()


def main():
    libraries = {path.name.removeprefix("nccl-"): path / "nvidia/nccl/lib/libnccl.so.2" for path in CACHE.glob("nccl-*")}
    releases = sorted((name for name, path in libraries.items() if path.exists()), key=lambda name: [int(part) for part in name.split(".")])
    if len(releases) < 2:
        sys.exit(f"error: {CACHE} holds {len(releases)} releases\n  hint: tools/setup/fetch_nccl.sh 2.21.5 2.28.9 2.32.3")
    names = set()
    for release in releases:
        names |= {name.decode() for name in re.findall(rb"(?<![A-Z0-9_])(NCCL_[A-Z0-9_]+)\0", read_only_data(libraries[release]))}
    names = sorted(name for name in names if not NO_VARIABLES.search(name))
    having = {name: [] for name in names}
    for release in releases:
        held = set(re.findall(rb"NCCL_[A-Z0-9_]+", libraries[release].read_bytes()))
        for name in names:
            if name.encode() in held:
                having[name].append(release)
    sys.stdout.write(HEAD.format(oldest=releases[0], newest=releases[-1]))
    for name in names:
        since = "" if having[name][0] == releases[0] else having[name][0]
        until = "" if having[name][-1] == releases[-1] else having[name][-1]
        print(f'DYNAMICCL_NCCL_VARIABLE("{name}", "{since}", "{until}")')


if __name__ == "__main__":
    main()
