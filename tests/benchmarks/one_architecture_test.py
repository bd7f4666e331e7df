#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what benchmarks/gpu/one_architecture.py keeps of a library, on small ELF files that are made here."""
import contextlib
import io
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/gpu"))
import one_architecture

PTX, CODE = 1, 2


def entry(kind, architecture, code):
    header = struct.pack("<HHIQQIHHI", kind, 0x101, 32, len(code), 0, 0, 0, 0, architecture)
    return header[:28] + struct.pack("<I", architecture) + code


def fat_binary(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf(**sections):
    """Returns a 64-bit ELF file that has only sections. `_nv_fatbin` stands for .nv_fatbin, which is no Python name."""
    names, body, rows = b"\0", b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    contents = {".nv_fatbin" if name == "_nv_fatbin" else name: data for name, data in sections.items()}
    contents[".shstrtab"] = b""
    for name in contents:
        names += name.encode() + b"\0"
    contents[".shstrtab"] = names
    for name, data in contents.items():
        rows.append(struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name.encode() + b"\0") + 1, 1, 0, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        body += data
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
    return header + body + b"".join(rows)


H100, A100, OLD = b"code of an H100 ", b"code of an A100 ", b"relocatable code"
LIBRARY = elf(text=b"host code", _nv_fatbin=fat_binary(entry(CODE, 80, A100), entry(CODE, 90, H100), entry(PTX, 90, b"ptx of architect")) + bytes(8) +
              fat_binary(entry(CODE, 90, H100)), __nv_relfatbin=fat_binary(entry(CODE, 90, OLD)))


class OneArchitecture(unittest.TestCase):
    def run_on(self, data, architecture="90"):
        """Returns the exit code, the output, and the copy or None."""
        with tempfile.TemporaryDirectory() as folder:
            source, copy = pathlib.Path(folder, "libnccl.so.2"), pathlib.Path(folder, "copy")
            source.write_bytes(data)
            sys.argv = ["one_architecture.py", str(source), str(copy), architecture]
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                code = one_architecture.main()
            return code, output.getvalue(), copy.read_bytes() if copy.exists() else None

    def test_leaves_the_wanted_code_and_everything_that_is_not_gpu_code(self):
        code, _, copy = self.run_on(LIBRARY)
        self.assertEqual(code, 0)
        wanted = bytearray(LIBRARY)
        for gone in (A100, b"ptx of architect", OLD):
            at = wanted.index(gone)
            wanted[at:at + len(gone)] = bytes(len(gone))
        self.assertEqual(copy, bytes(wanted))
        self.assertEqual(copy.count(H100), 2)

    def test_says_when_there_is_no_such_code(self):
        code, text, copy = self.run_on(LIBRARY, "100")
        self.assertEqual((code, copy), (1, None))
        self.assertIn("no code for architecture 100", text)

    def test_refuses_what_is_no_library_with_gpu_code(self):
        for data, why in ((b"text", "not a 64-bit ELF file"), (elf(text=b"host code"), "there is no section .nv_fatbin"),
                          (elf(_nv_fatbin=b"no fat binary at all"), "no fat binary at byte")):
            code, text, copy = self.run_on(data)
            self.assertEqual((code, copy), (1, None), why)
            self.assertIn(why, text)

    def test_refuses_every_cut_file_but_never_crashes(self):
        for length in range(len(LIBRARY) - 1):
            code, text, copy = self.run_on(LIBRARY[:length])
            self.assertEqual((code, copy), (1, None), length)
            self.assertIn("error: ", text)


if __name__ == "__main__":
    unittest.main()
