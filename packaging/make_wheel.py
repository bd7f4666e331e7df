#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Python wheels of what is built already; nothing is compiled where they are installed.

  make_wheel.py INSTALLATION OUT             dynamiccl-VERSION-py3-none-manylinux_2_N_MACHINE.whl: of `cmake --install`, with
                                             the program, the objects of jobs and hostccl
  make_wheel.py --torch-backend LIB/PYTHON OUT   dynamiccl_torch-...: the backend of torch.distributed of a build with LibTorch,
                                             for that release of Python and PyTorch only

Manual pages and completions go where pip puts them below share of its prefix, the same places as those of a package of Debian.
N is the release of glibc that the newest symbol of any file in the wheel needs. Wheels hold no symbolic links, so the other
names of libdynamiccl.so are left out: NCCL takes its path as well. SOURCE_DATE_EPOCH dates the files (default: 1980).
"""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ("share/bash-completion", "share/zsh", "share/fish", "share/man")
LEFT_OUT = ("lib/cmake", "lib/pkgconfig", "lib/python/dynamiccl_torch")


def fail(what, hint):
    sys.exit(f"error: {what}\n  hint: {hint}")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def glibc_of(path):
    """The minor release of glibc 2 that the file needs at least."""
    told = subprocess.run(["objdump", "-T", str(path)], capture_output=True, text=True, check=True).stdout
    return max((int(minor) for minor in re.findall(r"\(?GLIBC_2\.(\d+)", told)), default=0)


def files_below(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield path


class Wheel:
    """A zip with a RECORD of what is in it (the packaging standard's binary distribution format)."""

    def __init__(self, name, version, tag, out):
        self.path = out / f"{name}-{version}-{tag}.whl"
        self.info = f"{name}-{version}.dist-info"
        self.records = []
        date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
        self.date = date
        out.mkdir(parents=True, exist_ok=True)
        self.zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self.add_text(f"{self.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: packaging/make_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n")

    def add(self, name, data, executable=False):
        entry = zipfile.ZipInfo(name, self.date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def add_text(self, name, text):
        self.add(name, text.encode())

    def add_file(self, name, path):
        self.add(name, path.read_bytes(), os.access(path, os.X_OK))

    def close(self):
        self.records.append(f"{self.info}/RECORD,,")
        entry = zipfile.ZipInfo(f"{self.info}/RECORD", self.date)
        entry.external_attr = 0o100644 << 16
        self.zip.writestr(entry, "\n".join(self.records) + "\n")
        self.zip.close()
        print(self.path)


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: dynamiccl\nVersion: {version}\n"
            "Summary: Chooses NCCL's algorithm, protocol and channels from what a training job is doing\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
            + (ROOT / "README.md").read_text())


def make_product(home, out):
    """The wheel of an installation."""
    if not (home / "bin/dynamiccl").is_file() or not (home / "lib/libdynamiccl.so").is_file():
        fail(f"no bin/dynamiccl and lib/libdynamiccl.so below {home}", "cmake --install build/package --prefix FOLDER")
    version = (ROOT / "VERSION").read_text().strip()
    inside = [path for path in files_below(home) if not str(path.relative_to(home)).startswith(LEFT_OUT)]
    glibc = max(17, *(glibc_of(path) for path in inside if is_elf(path)))
    wheel = Wheel("dynamiccl", version, f"py3-none-manylinux_2_{glibc}_{platform.machine()}", out)
    wheel.add_text(f"{wheel.info}/METADATA", metadata(version))
    wheel.add_text(f"{wheel.info}/entry_points.txt", "[console_scripts]\ndynamiccl = dynamiccl.__main__:main\n")
    wheel.add_file(f"{wheel.info}/LICENSE", ROOT / "LICENSE")
    for path in files_below(ROOT / "packaging/python"):
        wheel.add_file(str(path.relative_to(ROOT / "packaging/python")), path)
    for path in inside:
        name = str(path.relative_to(home))
        folder = f"dynamiccl-{version}.data/data" if name.startswith(SHARED) else "dynamiccl/home"
        wheel.add_file(f"{folder}/{name}", path)
    wheel.close()


def make_torch_backend(folder, out):
    """The wheel of the folder lib/python of a build with LibTorch; its metadata lies there."""
    objects = list((folder / "dynamiccl_torch").glob("_backend.cpython-*.so"))
    if len(objects) != 1:
        fail(f"{len(objects)} objects dynamiccl_torch/_backend.cpython-*.so below {folder}, not one", "ninja -C build dynamiccl_torch")
    python = "cp" + re.search(r"cpython-(\d+)", objects[0].name).group(1)
    version = (ROOT / "VERSION").read_text().strip()
    wheel = Wheel("dynamiccl_torch", version, f"{python}-{python}-linux_{platform.machine()}", out)
    for path in files_below(folder):
        # The start-up folder is part of the product's wheel, whose program puts it on PYTHONPATH.
        if path.relative_to(folder).parts[0] != "dynamiccl_startup":
            wheel.add_file(str(path.relative_to(folder)), path)
    wheel.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("installation", type=pathlib.Path, help="folder of an installation, or lib/python of a build")
    parser.add_argument("out", type=pathlib.Path, help="folder for the wheel")
    parser.add_argument("--torch-backend", action="store_true", help="INSTALLATION is lib/python of a build with LibTorch")
    options = parser.parse_args()
    (make_torch_backend if options.torch_backend else make_product)(options.installation, options.out)


if __name__ == "__main__":
    main()
